// §29, ext-tasks (2026-07-28): calls that continue after their answer; any replica serves the result later.

import { fail, failInternal, failParams, GatewayError } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { toJsonRpcError } from '../../http/endpoint/render-error.ts';
import { generateSecret } from '../../platform/ids.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildTasksChannelName, nameOwner } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { Call } from '../calls/call.ts';
import type { CallContext, CallTask } from '../calls/context.ts';
import type { Question } from '../calls/guards.ts';
import type { RunMethod } from '../calls/methods.ts';
import type { CallControl } from '../calls/run-call.ts';
import { isEmpty, omit, pick } from '../catalog/client-requests.ts';
import type { ServedCatalog, Target, TaskRequest } from '../catalog/served-catalog.ts';
import { readString } from '../protocol/json-rpc.ts';
import type { Answer } from '../streaming/response-stream.ts';
import {
  createRelayedTaskIds,
  describeHandle,
  describeRelayed,
  guardTask,
  isRelayed,
} from './relayed-tasks.ts';
import {
  createTaskChanges,
  createTaskRuns,
  isTaskMessage,
  type RunningTask,
} from './running-tasks.ts';
import {
  createTaskRecords,
  describeInDetail,
  describeTask,
  findProblem,
  type TaskEnd,
  type TaskOwner,
  type TaskRecord,
} from './task-records.ts';

/** A call that may continue as a task. */
export interface TaskOffer extends CallTask {
  /** The answer to the client, once it has begun as a task. */
  readonly created: Promise<JsonObject>;
  /** Resolves to the client's answers, by the keys of the requests. */
  ask(questions: Readonly<Record<string, Question>>): Promise<JsonObject>;
  /** Takes the end of the call, once it has begun as a task. */
  end(answer: Answer): Promise<void>;
}

/** The path and the record of a request about a task. */
type TaskCall = Pick<Call, 'catalog' | 'record'>;

export type Tasks = ReturnType<typeof createTasks>;

export function createTasks(runtime: Runtime, { judge, getGuards }: CallControl) {
  const { config, clock, log, getSeal } = runtime;
  const { sessions, tasks } = config.mcp;
  const channel = buildTasksChannelName(sessions.keyPrefix);
  const replicas = createReplicas(runtime, channel, isTaskMessage);
  const { ownName } = replicas;
  const changes = createTaskChanges(runtime, replicas);
  const records = createTaskRecords(runtime);
  const relayedIds = createRelayedTaskIds(getSeal);
  const runs = createTaskRuns(runtime, records, changes, ownName);

  function offer(call: Call): TaskOffer {
    const { user, catalog, record } = call;
    let running: RunningTask | undefined;
    let adopted: JsonObject | undefined;
    let resolveCreated: (result: JsonObject) => void = () => {};
    const created = new Promise<JsonObject>((resolve) => {
      resolveCreated = resolve;
    });

    async function begin() {
      const id = generateSecret();
      const owner = toOwner(id, user, catalog);
      const key = records.buildKey(owner);
      if (call.signal().aborted) fail('request_cancelled');
      if (!(await records.reserveRun(key, owner.user))) fail('too_many_tasks');
      const now = clock.now();
      const first: TaskRecord = {
        tool: record.subject ?? '',
        replica: ownName,
        createdAt: now,
        updatedAt: now,
        ttlMs: tasks.taskTtlSeconds * 1000,
        questions: {},
        answers: {},
      };
      running = await runs
        .start({
          key,
          user: owner.user,
          record: first,
          signal: call.signal(),
          abort: () => call.abort(),
        })
        .catch(async (thrown: unknown) => {
          await records.releaseRun(key, owner.user).catch(() => {});
          throw thrown;
        });
      call.detach((error) => {
        if (error !== undefined) void running?.end({ error });
      });
      // Its login may have ended in the meantime.
      if (call.signal().aborted) void running.end({ error: new GatewayError('request_cancelled') });
      resolveCreated({ resultType: 'task', ...describeTask(id, first, clock.now()) });
    }

    return {
      created,
      begin,
      hasBegun: () => running !== undefined,
      adopt(relayed, server, result) {
        const handle = relayed.readHandle(result);
        if (handle === undefined) return result;
        const place = { server, tool: record.subject ?? '', id: handle.taskId };
        return relayedIds.seal(toOwner('', user, catalog), place).then((taskId) => {
          adopted = describeHandle(taskId, handle);
          return adopted;
        });
      },
      isHandle: (result) => result === adopted,
      send({ method, params }) {
        // ext-tasks: tasks have no log messages.
        if (method !== 'notifications/progress') return;
        const { message, progress, total } = { ...NO_PROGRESS, ...params };
        const count = total === undefined ? String(progress) : `${progress} of ${total}`;
        running?.note(typeof message === 'string' && message !== '' ? message : count);
      },
      ask: (questions) => running?.ask(questions) ?? fail('request_cancelled'),
      async end(answer) {
        noteFailure(answer, log);
        await running?.end(answer);
      },
    };
  }

  /** The record. Marks a task whose replica has stopped as `failed`. */
  async function find(taskId: string, caller: CallContext, call: TaskCall) {
    const owner = toOwner(taskId, caller.user, call.catalog);
    const { user } = owner;
    const key = records.buildKey(owner);
    const record = await records.read(key);
    if (record === undefined) return failUnknownTask();
    await findTool(record.tool, caller, call);
    const isHere =
      record.end !== undefined || (await runs.isRunning(key, record.replica).catch(failInternal));
    if (isHere) return { key, user, record };
    const error = new GatewayError('task_lost');
    const end = { status: 'failed', error: toJsonRpcError(error) } as const;
    const lost = await endElsewhere(key, user, end, error.message);
    return { key, user, record: lost ?? failUnknownTask() };
  }

  /** Releases the resources of a task whose replica may be gone. */
  async function endElsewhere(
    key: string,
    user: string | undefined,
    end: TaskEnd,
    statusMessage?: string,
  ): Promise<TaskRecord | undefined> {
    const ended = await records.end(key, end, statusMessage);
    await records.releaseRun(key, user);
    changes.announce(key);
    return ended;
  }

  /** Evaluates the policies again: rules or groups may have changed, and a tool that may not be called may not be read. */
  async function findTool(
    name: string,
    caller: CallContext,
    { catalog, record }: TaskCall,
  ): Promise<Target> {
    const target = await Promise.resolve(catalog.resolve({ list: 'tools', name }, caller)).catch(
      (thrown: unknown) => {
        if (thrown instanceof GatewayError && thrown.key === 'invalid_params') failUnknownTask();
        throw thrown;
      },
    );
    const verdict = judge?.(target.item, caller, undefined);
    if (verdict?.kind === 'denied') failUnknownTask();
    if (verdict?.kind === 'scopes_missing')
      fail('insufficient_scope', { data: { scopes: verdict.scopes } });
    // Guards of requests to the client are chosen by it.
    record.target = target;
    return target;
  }

  /** §29.5: queries its server. Undefined for an acknowledgement. */
  async function askServer(
    request: TaskRequest,
    caller: CallContext,
    call: TaskCall,
  ): Promise<JsonObject | undefined> {
    const { taskId } = request;
    const place = await relayedIds.open(toOwner('', caller.user, call.catalog), taskId);
    if (place === undefined) return failUnknownTask();
    const target = await findTool(place.tool, caller, call);
    if (target.relayedTasks === undefined || target.server !== place.server) failUnknownTask();
    const asking = target.relayedTasks.request({ ...request, taskId: place.id }, caller);
    const guarded = { target, context: caller, record: call.record };
    const task = await guardTask(getGuards?.(), guarded, asking);
    return task && describeRelayed(taskId, task);
  }

  /** `DetailedTask`. @throws GatewayError `invalid_params` if this caller has no such task. */
  async function read(taskId: string, caller: CallContext, call: TaskCall): Promise<JsonObject> {
    if (isRelayed(taskId)) {
      const task = await askServer({ method: 'tasks/get', taskId }, caller, call);
      return task ?? failUnknownTask();
    }
    const { record } = await find(taskId, caller, call);
    return describeInDetail(taskId, record, clock.now());
  }

  /** `tasks/*`, by the method's name. */
  const methods: Readonly<Record<string, RunMethod>> = {
    'tasks/get': async (params, context, call) => ({
      result: await read(readString(params, 'taskId'), context, call),
    }),
    async 'tasks/update'(params, context, call) {
      const taskId = readString(params, 'taskId');
      const { inputResponses } = params;
      if (!isObject(inputResponses)) failParams('params.inputResponses must be an object');
      if (isRelayed(taskId)) {
        await askServer({ method: 'tasks/update', taskId, inputResponses }, context, call);
        return NOTHING;
      }
      const { key } = await find(taskId, context, call);
      let problem: string | undefined;
      await records.update(key, (record) => {
        // ext-tasks: ignores answers to requests that are not open.
        const answered = pick(inputResponses, record.questions);
        problem = findProblem(record, answered);
        return problem !== undefined || record.end !== undefined || isEmpty(answered)
          ? undefined
          : {
              ...record,
              updatedAt: clock.now(),
              questions: omit(record.questions, answered),
              answers: { ...record.answers, ...answered },
            };
      });
      if (problem !== undefined) failParams(problem);
      changes.announce(key);
      return NOTHING;
    },
    async 'tasks/cancel'(params, context, call) {
      const taskId = readString(params, 'taskId');
      if (isRelayed(taskId)) {
        await askServer({ method: 'tasks/cancel', taskId }, context, call);
        return NOTHING;
      }
      const { key, user } = await find(taskId, context, call);
      await endElsewhere(key, user, { status: 'cancelled' });
      return NOTHING;
    },
  };

  return {
    offer,
    methods,
    read,
    reserveWatches: changes.reserveWatches,
    /** Sends the task now and after each change; returns the function that stops it. `readTask` reads with its user's rights. */
    watch: (
      taskId: string,
      { user, catalog }: Pick<Call, 'user' | 'catalog'>,
      readTask: () => Promise<JsonObject>,
      tell: (task: JsonObject) => void,
    ) => changes.watch(records.buildKey(toOwner(taskId, user, catalog)), readTask, tell),
    /** Drains running tasks for `graceMs`, then ends the rest. */
    async close(graceMs: number): Promise<void> {
      await runs.close(graceMs);
      replicas.close();
    },
  };
}

const NOTHING = { result: {} };
const NO_PROGRESS = { message: undefined, progress: 0, total: undefined };

const toOwner = (
  id: string,
  user: UserContext | undefined,
  catalog: Pick<ServedCatalog, 'name'>,
): TaskOwner => ({ id, user: user && nameOwner(user), catalogName: catalog.name });

/** The same for an unknown task and for one of another user. */
function failUnknownTask(): never {
  return fail('invalid_params', {
    message: 'Unknown task',
    details: 'There is no task with this id here, or it is kept no longer.',
  });
}

/** The request was answered long ago: no other log line reports the failure. */
function noteFailure(answer: Answer, log: Log) {
  const error = 'error' in answer ? answer.error : answer.failure;
  if (error === undefined) return;
  // Cancelled on request: not a failure, so its stack trace is not useful.
  if (error.key === 'request_cancelled') {
    log.info('A task was cancelled.', { error: error.key });
    return;
  }
  log.warn('A task failed.', {
    error: error.key,
    details: error.message,
    cause: error.cause,
    ...error.failure.facts,
  });
}
