// MCP 2026-07-28 "Multi Round-Trip Requests": a tool that asks the client runs again with the answers of all rounds, by key.

import { fail, failInternal, failParams, failUpstream } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import { noteMembers, toRawMembers } from '../../platform/noted-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/keys.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';
import { type Call, InputRequired } from '../calls/call.ts';
import { readAnswers } from '../calls/client-answers.ts';
import type { CallClient } from '../calls/context.ts';
import { passAnswers, passQuestions, type Question, type QuestionGuards } from '../calls/guards.ts';
import {
  type Answers,
  type ClientCapabilities,
  type ClientRequests,
  findMissingCapabilities,
  isEmpty,
  omit,
  pick,
} from '../catalog/client-requests.ts';
import type { MirroredParam } from '../catalog/content.ts';
import type { JsonRpcRequest } from '../protocol/json-rpc.ts';
import type { TaskOffer } from '../tasks/tasks.ts';
import { checkParamHeaders, type Envelope } from './envelope.ts';

/** One run of a tool, with the answers so far. */
export interface Round extends CallClient {
  isAsking(): boolean;
  /** Set for a call that may become a task. */
  task: TaskOffer | undefined;
  /** The result that asks the client; for a call that `isAsking`. */
  createInputRequired(): Promise<JsonObject>;
}

/** @throws GatewayError `invalid_params` for invalid answers, or an invalid state. */
export async function startRound(
  { user, request: httpRequest }: Call,
  request: JsonRpcRequest,
  { client, logLevel }: Envelope,
  requestState: RequestState,
): Promise<Round> {
  const getBinding = prepareBinding(user, request);
  const { answers, relayed, approval } = await readClientAnswers(
    getBinding,
    request.params,
    requestState,
  );
  const usedAnswers: Record<string, unknown> = {};
  const openRequests: Record<string, Question> = {};
  let relayedRequests: JsonObject | undefined;
  let relayedState: JsonObject | undefined;
  let approvalQuestion: JsonObject | undefined;
  let createSecret: (() => Promise<string>) | undefined;
  const isAsking = () =>
    approvalQuestion !== undefined || relayedRequests !== undefined || !isEmpty(openRequests);

  const round: Round = {
    capabilities: () => client,
    logLevel,
    isAsking,
    task: undefined,
    checkTarget({ target, context, args }) {
      const check = (params: readonly MirroredParam[]) =>
        checkParamHeaders(httpRequest, params, args);
      const mirrored = target.listMirroredParams(context);
      if (mirrored instanceof Promise) return mirrored.then(check);
      check(mirrored);
      return undefined;
    },
    async ask(requests, guards) {
      const { task } = round;
      if (task?.hasBegun() === true) return askInTask(task, requests, client, guards);
      const known = pick(answers, requests);
      Object.assign(usedAnswers, known);
      const answered = pick(requests, answers);
      const unanswered = omit(requests, answers);
      // Including those of earlier rounds: a tool that runs again has seen none of them.
      const passed = await passAnswers(answered, known, guards);
      if (isEmpty(unanswered)) return readAnswers(requests, passed);
      readAnswers(answered, passed);
      checkCapabilities(unanswered, client);
      Object.assign(openRequests, await passQuestions(unanswered, guards));
      throw new InputRequired();
    },

    createRelayedClient: ({ wantsProgress, signal, meta, canAsk, questionGuards }) => ({
      era: 'stateless',
      signal,
      wantsProgress,
      meta,
      questionGuards,
      logLevel,
      answered: relayed && { inputResponses: answers, state: relayed },
      requireInput(inputRequests, state) {
        // MCP 2026-07-28 "Supported Requests".
        if (!canAsk)
          failUpstream('The server asks the client where only tools, prompts and resources may.');
        relayedRequests = inputRequests;
        relayedState = state;
        throw new InputRequired();
      },
    }),

    approvalRounds: {
      brought: approval,
      require(question, secret) {
        approvalQuestion = { [APPROVAL]: question };
        createSecret = async () => secret;
        throw new InputRequired();
      },
      passOn(create) {
        createSecret = create;
      },
    },

    async createInputRequired() {
      const inputRequests = approvalQuestion ?? relayedRequests ?? openRequests;
      // A call that has not run yet passes on the state that it brought.
      const kept =
        approvalQuestion === undefined
          ? { answers: usedAnswers, relayed: relayedState }
          : { answers, relayed };
      return {
        resultType: 'input_required',
        inputRequests,
        requestState: await requestState.seal(getBinding(), {
          ...kept,
          asked: Object.keys(inputRequests),
          approval: createSecret && {
            secret: await createSecret(),
            isQuestion: approvalQuestion !== undefined,
          },
        }),
      };
    },
  };
  return round;
}

/** §29: the client answers while the task runs. */
async function askInTask<const Requests extends ClientRequests>(
  task: TaskOffer,
  requests: Requests,
  client: ClientCapabilities,
  guards: QuestionGuards | undefined,
): Promise<Answers<Requests>> {
  checkCapabilities(requests, client);
  const received = await task.ask(await passQuestions(requests, guards));
  const answers = pick(received, requests);
  return readAnswers(requests, await passAnswers(requests, answers, guards));
}

/** @throws GatewayError `missing_client_capability` for what the client did not declare. */
function checkCapabilities(requests: ClientRequests, client: ClientCapabilities) {
  const missing = findMissingCapabilities(requests, client);
  if (missing.length === 0) return;
  fail('missing_client_capability', {
    details: `This call needs a client that declares ${missing.join(', ')}.`,
    data: { requiredCapabilities: Object.fromEntries(missing.map((name) => [name, {}])) },
  });
}

/** The key of the approval request. */
const APPROVAL = 'approval';

/**
 * Reads the answers to this call. Unsolicited answers are ignored (MCP "Server Requirements"), and the tool asks: a form that was
 * never shown must not count as filled in.
 */
async function readClientAnswers(
  getBinding: () => string,
  params: unknown,
  requestState: RequestState,
) {
  const { inputResponses = {}, requestState: state } = isObject(params) ? params : {};
  if (!isObject(inputResponses)) failParams('params.inputResponses must be an object');
  if (state === undefined) return { answers: {} };
  if (typeof state !== 'string') failParams('params.requestState must be a string');
  const { answers, asked, relayed, approval } = await requestState.open(getBinding(), state);
  const received = Object.fromEntries(
    Object.entries(inputResponses).filter(([key]) => asked.includes(key)),
  );
  if (approval === undefined) return { answers: { ...received, ...answers }, relayed };
  const { secret, isQuestion } = approval;
  return {
    // Servers and authors may use the same key: theirs is asked in another round.
    answers: isQuestion ? answers : { ...received, ...answers },
    relayed,
    approval: { secret, response: isQuestion ? received[APPROVAL] : undefined },
  };
}

// MCP 2026-07-28 "Multi Round-Trip Requests": `requestState` passes through the client: it is sealed, bound to user and call,
// and expires.

/** The state of a call when it asks. */
interface RequestProgress {
  /** The client's answers so far, by key. */
  readonly answers: JsonObject;
  /** Keys of the open requests: other answers do not count. */
  readonly asked: readonly string[];
  /** The state of a relayed call. */
  readonly relayed?: JsonObject | undefined;
  /** Set for a call that needs approval (§27). */
  readonly approval?: { readonly secret: string; readonly isQuestion: boolean } | undefined;
}

/** Maximum number of characters that a waiting call may keep. */
const MAX_KEPT = 4096;

/**
 * Serializes before the tool runs, which may change its arguments. Hardly any call asks: only long strings are hashed in advance.
 */
function prepareBinding(
  user: UserContext | undefined,
  { method, params }: JsonRpcRequest,
): () => string {
  const { name, uri, arguments: args, ref, argument } = isObject(params) ? params : {};
  const owner = user ? nameOwner(user) : null;
  // The only call for which a state is valid.
  const call = JSON.stringify([owner, method, name, uri, args, ref, argument]);
  return call.length > MAX_KEPT ? keep(toBinding(call)) : () => toBinding(call);
}

/** A separate function: a shared closure scope would keep the text as well. */
const keep = (binding: string) => () => binding;

const toBinding = (call: string) => `mcp:request-state:${hashSha256(call)}`;

/** Long enough for a person to look something up before answering. */
const LIFETIME_MS = 3_600_000;

type RequestState = ReturnType<typeof createRequestState>;

export function createRequestState({ getSeal, clock }: Runtime) {
  const requireSeal = () => getSeal().catch(failInternal);

  return {
    /** `binding` comes from `prepareBinding`. */
    async seal(
      binding: string,
      { answers, asked, relayed, approval }: RequestProgress,
    ): Promise<string> {
      const expiresAt = clock.now() + LIFETIME_MS;
      const state = { expiresAt, answers: toRawMembers(answers), asked, relayed, approval };
      const text = writeVersioned(state, writeExactJson);
      return (await requireSeal()).seal(binding, text);
    },
    /** @throws GatewayError `invalid_params` for a state of another call or user, and an expired one. */
    async open(binding: string, state: string): Promise<RequestProgress> {
      const text = (await requireSeal()).open(binding, state);
      const { expiresAt, answers, asked, relayed, approval }: JsonObject =
        text === undefined ? {} : readVersioned(text, 'params.requestState');
      if (
        typeof expiresAt !== 'number' ||
        !isObject(answers) ||
        !isStringArray(asked) ||
        expiresAt <= clock.now()
      ) {
        failParams(
          'params.requestState belongs to another call, or is more than an hour old. Call again without it.',
        );
      }
      noteMembers(answers, text ?? '', ['answers']);
      return {
        answers,
        asked,
        ...(isObject(relayed) && { relayed }),
        ...(isObject(approval) &&
          typeof approval.secret === 'string' && {
            approval: { secret: approval.secret, isQuestion: approval.isQuestion === true },
          }),
      };
    },
  };
}
