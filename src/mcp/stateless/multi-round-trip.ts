// MCP 2026-07-28 "Multi Round-Trip Requests": a tool that asks runs again when the client has
// answered, and finds the answers of all rounds by their keys.
import { fail } from '../../errors/gateway-error.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { JsonRpcRequest } from '../../protocol/json-rpc.ts';
import type { Call } from '../calls/call.ts';
import { readAnswers } from '../calls/client-answers.ts';
import type { CallClient } from '../calls/context.ts';
import { InputRequired } from '../calls/outcome.ts';
import {
  type ClientRequest,
  type ClientRequests,
  findMissingCapabilities,
} from '../catalog/client-requests.ts';
import type { MirroredParam } from '../catalog/descriptions.ts';
import type { Envelope } from './envelope.ts';
import { checkParamHeaders } from './request-headers.ts';
import { computeBinding, type RequestState } from './request-state.ts';

/** One run of a tool, with the answers that came so far. */
export interface Round extends CallClient {
  /** The result that asks the client. Only once something was asked. */
  createInputRequired(): Promise<JsonObject>;
}

/** @throws GatewayError `invalid_params` for answers or a state that cannot be read. */
export async function startRound(
  { user, request: httpRequest }: Pick<Call, 'user' | 'request'>,
  request: JsonRpcRequest,
  { client, logLevel }: Envelope,
  requestState: RequestState,
): Promise<Round> {
  // In place of the arguments, which may be large: a call that waits keeps this.
  const binding = computeBinding(user, request);
  const { answers, relayed } = await readClientAnswers(binding, request.params, requestState);
  const usedAnswers: Record<string, unknown> = {};
  const openRequests: Record<string, ClientRequest> = {};
  let relayedRequests: JsonObject | undefined;
  let relayedState: JsonObject | undefined;
  const isAsking = () => relayedRequests !== undefined || Object.keys(openRequests).length > 0;

  return {
    capabilities: () => client,
    logLevel,
    isAsking,
    checkTarget(target, caller, args) {
      const check = (params: readonly MirroredParam[]) =>
        checkParamHeaders(httpRequest, params, args);
      const mirrored = target.listMirroredParams(caller);
      if (mirrored instanceof Promise) return mirrored.then(check);
      check(mirrored);
      return undefined;
    },
    async ask(requests) {
      const unanswered = selectUnanswered(requests, answers);
      const answeredKeys = Object.keys(requests).filter((key) => !Object.hasOwn(unanswered, key));
      for (const key of answeredKeys) usedAnswers[key] = answers[key];
      if (Object.keys(unanswered).length === 0) return readAnswers(requests, answers);
      readAnswers(pick(requests, answeredKeys), answers);
      const missing = findMissingCapabilities(unanswered, client);
      if (missing.length > 0) {
        fail('missing_client_capability', {
          details: `This call needs a client that declares ${missing.join(', ')}.`,
          data: { requiredCapabilities: Object.fromEntries(missing.map((name) => [name, {}])) },
        });
      }
      Object.assign(openRequests, unanswered);
      throw new InputRequired();
    },

    createRelay: ({ wantsProgress, signal, meta, canAsk }) => ({
      era: 'stateless',
      signal,
      wantsProgress,
      meta,
      logLevel,
      answered: relayed && { inputResponses: answers, state: relayed },
      requireInput(inputRequests, state) {
        if (!canAsk) fail('upstream_error', { jsonRpc: CANNOT_ASK });
        relayedRequests = inputRequests;
        relayedState = state;
        throw new InputRequired();
      },
    }),

    async createInputRequired() {
      const inputRequests = relayedRequests ?? openRequests;
      return {
        resultType: 'input_required',
        inputRequests,
        requestState: await requestState.seal(binding, {
          answers: usedAnswers,
          asked: Object.keys(inputRequests),
          relayed: relayedState,
        }),
      };
    },
  };
}

/** MCP 2026-07-28 "Supported Requests". */
const CANNOT_ASK = {
  code: -32603,
  message: 'The server asks the client where only tools, prompts and resources may.',
};

interface ClientAnswers {
  /** By the keys of the questions. */
  readonly answers: JsonObject;
  readonly relayed?: JsonObject | undefined;
}

/**
 * What was answered to this call. Answers that nobody asked for are left alone, as MCP says ("Server
 * Requirements"), and the tool asks: a form that nobody was shown must not count as filled in.
 */
async function readClientAnswers(
  binding: string,
  params: unknown,
  requestState: RequestState,
): Promise<ClientAnswers> {
  const { inputResponses = {}, requestState: state } = isObject(params) ? params : {};
  if (!isObject(inputResponses)) {
    fail('invalid_params', { details: 'params.inputResponses must be an object' });
  }
  if (state === undefined) return { answers: {} };
  if (typeof state !== 'string') {
    fail('invalid_params', { details: 'params.requestState must be a string' });
  }
  const { answers, asked, relayed } = await requestState.open(binding, state);
  const received = asked ? pick(inputResponses, asked) : inputResponses;
  return { answers: { ...received, ...answers }, relayed };
}

const selectUnanswered = (requests: ClientRequests, answers: JsonObject): ClientRequests =>
  pick(
    requests,
    Object.keys(requests).filter((key) => !Object.hasOwn(answers, key)),
  );

const pick = <Value>(from: Readonly<Record<string, Value>>, keys: readonly string[]) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key)));
