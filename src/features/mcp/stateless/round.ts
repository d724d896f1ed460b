// MCP 2026-07-28 "Multi Round-Trip Requests": a tool that asks runs again when the client has
// answered, and finds the answers of all rounds by their keys.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import { InputRequired } from '../calls/input-required.ts';
import { readAnswers } from '../catalog/client-answers.ts';
import {
  type Ask,
  type ClientCapabilities,
  type ClientRequest,
  type ClientRequests,
  lackingCapabilities,
} from '../catalog/client-requests.ts';
import { type BoundCall, boundPart, type Given, type RequestState } from './request-state.ts';

export interface Round {
  readonly ask: Ask;
  /** Whether something was asked that has no answer yet. */
  isAsking(): boolean;
  /** The result that asks the client, once something was asked; whatever the tool did then. */
  inputRequired(): Promise<Readonly<Record<string, unknown>> | undefined>;
}

/** @throws GatewayError `invalid_params` for answers or a state that cannot be read. */
export async function beginRound(
  call: BoundCall,
  client: ClientCapabilities,
  states: RequestState,
): Promise<Round> {
  const given = await givenIn(call, states);
  const bound = boundPart(call);
  const used: Record<string, unknown> = {};
  const open: Record<string, ClientRequest> = {};
  const isAsking = () => Object.keys(open).length > 0;

  return {
    isAsking,
    async ask(requests) {
      const missing = withoutAnswer(requests, given);
      const answered = Object.keys(requests).filter((key) => !Object.hasOwn(missing, key));
      for (const key of answered) used[key] = given[key];
      if (Object.keys(missing).length === 0) return readAnswers(requests, given);
      readAnswers(pick(requests, answered), given);
      const lacking = lackingCapabilities(missing, client);
      if (lacking.length > 0) {
        fail('missing_client_capability', {
          details: `This call needs a client that declares ${lacking.join(', ')}.`,
          data: { requiredCapabilities: Object.fromEntries(lacking.map((name) => [name, {}])) },
        });
      }
      Object.assign(open, missing);
      throw new InputRequired();
    },

    async inputRequired() {
      if (!isAsking()) return undefined;
      return {
        resultType: 'input_required',
        inputRequests: open,
        requestState: await states.seal(bound, { answers: used, asked: Object.keys(open) }),
      };
    },
  };
}

/**
 * What was answered to this call. Answers that nobody asked for are left alone, as MCP says ("Server
 * Requirements"), and the tool asks: a form that nobody was shown must not count as filled in.
 */
async function givenIn(call: BoundCall, states: RequestState): Promise<Given> {
  const { params } = call.request;
  const { inputResponses = {}, requestState } = isObject(params) ? params : {};
  if (!isObject(inputResponses)) {
    fail('invalid_params', { details: 'params.inputResponses must be an object' });
  }
  if (requestState === undefined) return {};
  if (typeof requestState !== 'string') {
    fail('invalid_params', { details: 'params.requestState must be a string' });
  }
  const { answers, asked } = await states.open(call, requestState);
  return { ...(asked ? pick(inputResponses, asked) : inputResponses), ...answers };
}

const withoutAnswer = (requests: ClientRequests, given: Given): ClientRequests =>
  pick(
    requests,
    Object.keys(requests).filter((key) => !Object.hasOwn(given, key)),
  );

const pick = <Value>(from: Readonly<Record<string, Value>>, keys: readonly string[]) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key)));
