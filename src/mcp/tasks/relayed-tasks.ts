// §29.5: tasks of servers. The gateway stores nothing about them: the client's task id is sealed, and names server and task for
// one user and one path.

import {
  failInternal,
  failParams,
  failUpstream,
  GatewayError,
} from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { readExact, toNoted, toRawJson, toRawMembers } from '../../platform/noted-json.ts';
import { readVersioned, writeVersioned } from '../../store/records.ts';
import type { Seal } from '../../store/seal/seal.ts';
import { toErrorResult } from '../calls/call.ts';
import { URL_REQUIRED } from '../calls/client-answers.ts';
import type { ItemCall } from '../calls/context.ts';
import { guardEnd, guardThrown } from '../calls/guard-call.ts';
import {
  CallStopped,
  type Guards,
  passAnswers,
  passQuestions,
  type Question,
  type QuestionGuards,
  rethrowStopped,
} from '../calls/guards.ts';
import type { Context } from '../catalog/catalog.ts';
import { pick } from '../catalog/client-requests.ts';
import type { RelayedTask, TaskRequest } from '../catalog/served-catalog.ts';
import { toUrlRequired } from '../upstream/failures.ts';
import {
  findKindProblem,
  findQuestionProblem,
  nameAsker,
  type RelayedRequest,
  readQuestions,
} from '../upstream/server-request.ts';
import { readTaskError, type TaskOwner } from './task-records.ts';

/** A task of a server. */
interface TaskPlace {
  readonly server: string;
  /** The called tool, as clients of its path see it. */
  readonly tool: string;
  /** The server's id. */
  readonly id: string;
}

type Whose = Pick<TaskOwner, 'user' | 'catalogName'>;

/** No id of the gateway's own tasks begins with it. */
const PREFIX = 'r.';

export const isRelayed = (taskId: string): boolean => taskId.startsWith(PREFIX);

export function createRelayedTaskIds(getSeal: () => Promise<Seal>) {
  const requireSeal = () => getSeal().catch(failInternal);
  const describe = ({ user, catalogName }: Whose) =>
    `mcp:relayed-task:${hashSha256(JSON.stringify([user ?? null, catalogName ?? null]))}`;

  return {
    async seal(whose: Whose, place: TaskPlace): Promise<string> {
      return PREFIX + (await requireSeal()).seal(describe(whose), writeVersioned(place));
    },
    /** Undefined for an id of another user or path. */
    async open(whose: Whose, taskId: string): Promise<TaskPlace | undefined> {
      const text = (await requireSeal()).open(describe(whose), taskId.slice(PREFIX.length));
      if (text === undefined) return undefined;
      const { server, tool, id } = readVersioned<JsonObject>(text, 'params.taskId');
      return typeof server === 'string' && typeof tool === 'string' && typeof id === 'string'
        ? { server, tool, id }
        : undefined;
    },
  };
}

/** `Task` or `DetailedTask`, under the client's id. */
export const describeRelayed = (taskId: string, task: RelayedTask): JsonObject => ({
  ...task,
  ...(task.result && { result: toRawJson(task.result) }),
  taskId,
});

/** Needs no guard: nothing in a handle is the server's own text. */
export const describeHandle = (taskId: string, task: RelayedTask): JsonObject => {
  const { statusMessage: _, ...handle } = task;
  return { resultType: 'task', ...describeRelayed(taskId, handle) };
};

// §26, §29.5: guards each result of a server's task as the result of a call, and each error of a request about it.

export async function guardTask(
  guards: Guards | undefined,
  { target, context, record }: Pick<ItemCall, 'target' | 'context' | 'record'>,
  asking: Promise<RelayedTask | undefined>,
): Promise<RelayedTask | undefined> {
  const after = guards?.find('tools/result', target.item);
  const elicitation = guards?.find('elicitation', target.item);
  const told = guards?.find('notifications', target.item);
  const message = { caller: record, signal: context.relay.signal };
  const task = await asking.catch((thrown: unknown) =>
    guardThrown(thrown, { after, elicitation, message }).catch((stopped: unknown) => {
      if (stopped instanceof CallStopped) record.deniedBy = stopped.by;
      return rethrowStopped(stopped);
    }),
  );
  if (task === undefined || !(after || elicitation || told)) return task;
  // Drops the status message: it is not a notification, so no guard would see it.
  const { statusMessage: _, ...rest } = task;
  if (rest.result === undefined && rest.error === undefined) return rest;
  const { result, error, ...ended } = rest;
  const running =
    result === undefined
      ? Promise.reject(new GatewayError('upstream_error', error && { jsonRpc: error }))
      : Promise.resolve(result);
  try {
    const passed = await guardEnd(running, { after, elicitation, target, message, context });
    return { ...ended, result: isObject(passed) ? passed : {} };
  } catch (thrown) {
    // As for a call: the result says what stopped it.
    if (thrown instanceof CallStopped) {
      record.deniedBy = thrown.by;
      return { ...ended, status: 'completed', result: toErrorResult(thrown.message) };
    }
    const jsonRpc = thrown instanceof GatewayError ? thrown.failure.jsonRpc : undefined;
    if (jsonRpc === undefined) throw thrown;
    return { ...ended, error: jsonRpc };
  }
}

// §29.5: parses tasks of servers of the stateless era, without trust. Their requests to the client are treated like the requests
// of a call.

/** Bounds on what a server can make the gateway relay. */
const MAX_ID_LENGTH = 512;
const MAX_MESSAGE = 1000;

/** Reads the answer to a call; undefined if it is not a task. @throws GatewayError for an invalid one. */
export function readTaskHandle(server: string, result: JsonObject): RelayedTask | undefined {
  return result.resultType === 'task' ? readTask(server, result) : undefined;
}

/** @throws GatewayError for an error from the server, or an invalid answer. */
export async function relayTaskRequest(
  server: string,
  { method, taskId, inputResponses }: TaskRequest,
  context: Context,
  send: (request: RelayedRequest) => Promise<JsonObject>,
): Promise<RelayedTask | undefined> {
  const ask = (params: JsonObject, asked: RelayedRequest['method'] = method) =>
    send({ method: asked, params: { taskId, ...params }, name: taskId });
  if (method === 'tasks/get') {
    const task = await guardQuestions(readTask(server, await ask({})), server, context);
    return task.error?.code === URL_REQUIRED
      ? { ...task, error: toUrlRequired(server, task.error, context.client) }
      : task;
  }
  if (method === 'tasks/cancel') {
    await ask({});
    return undefined;
  }
  const { questionGuards } = context.relay;
  let passed = inputResponses;
  if (questionGuards !== undefined) {
    // Only the server knows its open requests: the gateway stores nothing about the task.
    const { inputRequests = {} } = readTask(server, await ask({}, 'tasks/get'));
    passed = await guardAnswers(inputRequests, inputResponses ?? {}, questionGuards);
  }
  await ask({ inputResponses: passed && toRawMembers(passed) });
  return undefined;
}

async function guardQuestions(
  task: RelayedTask,
  server: string,
  { relay, client }: Context,
): Promise<RelayedTask> {
  const { inputRequests } = task;
  if (inputRequests === undefined) return task;
  for (const question of Object.values(inputRequests)) {
    const problem = findQuestionProblem(question, client);
    if (problem === undefined) continue;
    return failUpstream(
      `${server} needs an answer that this client cannot give: ${problem.message} Cancel the task.`,
    );
  }
  const { questionGuards: guards } = relay;
  const passed = guards
    ? await passQuestions(inputRequests, guards).catch(rethrowStopped)
    : inputRequests;
  const named = Object.entries(passed).map(([key, one]) => [key, nameAsker(server, one)]);
  return { ...task, inputRequests: Object.fromEntries(named) };
}

/**
 * The request determines which guard sees its answer: an answer to no request, or to a different kind of request from the one that
 * the server has open, would bypass all guards.
 */
function guardAnswers(
  asked: Readonly<Record<string, Question>>,
  received: JsonObject,
  guards: QuestionGuards,
): Promise<JsonObject> {
  const answered = pick(received, asked);
  for (const [key, answer] of Object.entries(answered)) {
    const question = asked[key];
    const problem = question && findKindProblem(question, answer);
    if (problem === undefined) continue;
    failParams(`params.inputResponses "${key.slice(0, 100)}" ${problem}`);
  }
  return passAnswers(asked, answered, guards).catch(rethrowStopped);
}

function readTask(server: string, written: JsonObject): RelayedTask {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } =
    written;
  if (typeof taskId !== 'string' || taskId === '' || taskId.length > MAX_ID_LENGTH)
    return failUpstream(`${server} named a task in a way that cannot be passed on.`);
  const known = STATUSES.find((one) => one === status);
  if (known === undefined)
    return failUpstream(`${server} says what a task is in words unknown here.`);
  return {
    taskId,
    status: known,
    ...(typeof statusMessage === 'string' && {
      statusMessage: statusMessage.slice(0, MAX_MESSAGE),
    }),
    createdAt: readTime(server, createdAt),
    lastUpdatedAt: readTime(server, lastUpdatedAt),
    ttlMs: isDuration(ttlMs) ? ttlMs : null,
    ...(isDuration(pollIntervalMs) && { pollIntervalMs }),
    ...(written.resultType !== 'task' && readDetails(server, known, readExact(written))),
  };
}

/** The members that the status requires; the answer to the call itself has none. */
function readDetails(
  server: string,
  status: RelayedTask['status'],
  { result, error, inputRequests }: JsonObject,
): Pick<RelayedTask, 'result' | 'error' | 'inputRequests'> {
  if (status === 'failed')
    return { error: readTaskError(error, 'The server did not say why the task failed.') };
  if (status === 'input_required')
    return { inputRequests: readQuestions(server, inputRequests, failUpstream) };
  if (status !== 'completed') return {};
  return isObject(result)
    ? // As for a call: servers that inline a result may omit it, and a task never results in a task.
      { result: toNoted({ ...result, resultType: 'complete' }) }
    : failUpstream(`${server} says that a task is completed, and not with what.`);
}

const STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;

const isDuration = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0;

const readTime = (server: string, time: unknown) =>
  typeof time === 'string' && !Number.isNaN(Date.parse(time))
    ? new Date(time).toISOString()
    : failUpstream(`${server} says of a task a time that is none.`);
