// The stateless era, 2026-07-28: every request brings its version and what its client can do; no
// session, no requests to the client.
import { fail } from '../../errors/gateway-error.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import {
  addMembers,
  findWritten,
  isObject,
  type JsonObject,
  noteWritten,
  type Written,
} from '../../platform/json.ts';
import { findText, noteMembers, readExact } from '../../platform/noted-json.ts';
import { removeMembers } from '../../platform/splice-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Call, EraHandler } from '../calls/call.ts';
import { createContext } from '../calls/context.ts';
import {
  failUnknownMethod,
  failWithoutTasks,
  listCapabilities,
  type RunMethod,
} from '../calls/methods.ts';
import {
  ACCEPTED,
  type Answer,
  type MethodResult,
  type Outcome,
  type StreamResponse,
  toAnswer,
  toErrorAnswer,
} from '../calls/outcome.ts';
import type { Calls } from '../calls/run-call.ts';
import type { ClientCapabilities } from '../catalog/client-requests.ts';
import type { JsonRpcRequest } from '../protocol/json-rpc.ts';
import { SUPPORTED_VERSIONS, TASKS } from '../protocol/revisions.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import type { TaskOffer, Tasks } from '../tasks/tasks.ts';
import { checkNameHeader, type Envelope, readEnvelope } from './envelope.ts';
import { createRequestState, type Round, startRound } from './multi-round-trip.ts';
import { createOpeningStream, createOpenSubscription, readFilter } from './subscriptions.ts';

/** Like the lists: new with a deploy. */
const DISCOVER_CACHE = { ttlMs: 60_000, scope: 'public' } as const;

export function createStatelessEraHandler(
  runtime: Runtime,
  calls: Calls,
  tasks: Tasks,
  notificationStreams: NotificationStreams,
): EraHandler {
  const { streams: hasStreams } = runtime.config.mcp;
  const { name, version } = calls.services.service;
  const requestState = createRequestState(runtime);
  const createServerInfo = (members: JsonObject) => ({
    'io.modelcontextprotocol/serverInfo': { name, version, ...members },
  });
  const serverInfo = createServerInfo({});
  // It is in each result.
  noteWritten(serverInfo, JSON.stringify(serverInfo));
  const ownRuns: Readonly<Record<string, RunMethod>> = {
    async 'server/discover'(_, context, { catalog }) {
      const description = await catalog.describe(context);
      const { instructions } = description;
      const result = {
        supportedVersions: SUPPORTED_VERSIONS,
        capabilities: listCapabilities(description, hasStreams, 'stateless'),
        ...(instructions !== undefined && { instructions }),
      };
      return { result, cache: catalog.isShared ? DISCOVER_CACHE : NOT_SHARED };
    },
    ...Object.fromEntries(
      Object.entries(tasks.methods).map(([method, run]) => [method, requireTasks(run)]),
    ),
  };
  const openSubscription = createOpenSubscription(notificationStreams, tasks, serverInfo);

  return {
    accessSession: () => undefined,
    handle(call, message) {
      if (message.kind === 'notification') return ACCEPTED;
      if (message.kind === 'response') {
        fail('invalid_request', {
          details: 'This service has sent no request that this could answer.',
        });
      }
      const { request, stream, record } = call;
      const envelope = readEnvelope(request, message, call.catalog.offers);
      const { method } = record;
      if (method === undefined) failUnknownMethod('unknown_method', message.method);
      stream.mayBegin = true;
      if (method.name === 'subscriptions/listen') {
        if (!stream.isAccepted) fail('not_acceptable');
        const opening = listen(call, message, envelope);
        stream.keep(createOpeningStream(opening, message.id));
        opening.then(
          (opened) => stream.pass(opened),
          (thrown: unknown) => stream.end(toErrorAnswer(thrown)),
        );
        return stream.respond();
      }
      checkNameHeader(request, method, message.params);
      const { inputResponses: answers }: JsonObject = isObject(message.params)
        ? message.params
        : {};
      // Answers of clients reach servers as they were written.
      if (answers) noteMembers(answers, call.sentText ?? '', ['params', 'inputResponses']);
      answerCall(call, message, envelope).then(
        (answer) => stream.end(answer),
        (thrown: unknown) => stream.end(toErrorAnswer(thrown)),
      );
      return stream.respond();
    },
  };

  /** Until the stream is open it is a call like any other: what it names may be asked about at servers. */
  async function listen(
    call: Call,
    message: JsonRpcRequest,
    envelope: Envelope,
  ): Promise<StreamResponse> {
    const { user, catalog } = call;
    const { client } = envelope;
    const stopCounting = calls.count(call);
    try {
      const clientId = calls.findClientId({ user });
      call.record.clientId = clientId;
      const caller = { user, session: undefined, client, clientId, view: catalog.view };
      const filter = readFilter(message.params);
      if (filter.taskIds.length > 0) checkDeclaresTasks(client);
      return await openSubscription(message, filter, call, caller, async (record) =>
        createContext(
          {
            user,
            session: call.session,
            // Whoever asks for a task is not whoever waits for the answer of this call.
            record,
            stream: call.stream,
            signal: () => call.signal(),
            abortSignal: () => call.abortSignal(),
          },
          await startRound(call, message, envelope, requestState, undefined),
          calls.services,
          message.params,
        ),
      );
    } finally {
      stopCounting();
    }
  }

  /** Does not await the work: that would keep the request until it ends. */
  async function answerCall(
    call: Call,
    request: JsonRpcRequest,
    envelope: Envelope,
  ): Promise<Answer> {
    const mayBeTask =
      call.record.method?.item?.kind === 'tool' &&
      call.catalog.offers.tasks === true &&
      declaresTasks(envelope.client);
    const task = mayBeTask ? tasks.offer(call) : undefined;
    const round = await startRound(call, request, envelope, requestState, task);
    const work = calls.run(call, round, request.params, ownRuns[request.method]);
    // A view (§25.1) has a title of its own.
    const { title } = call.catalog;
    const info = title === undefined ? serverInfo : createServerInfo({ title });
    return task === undefined ? endRound(round, work, info) : answerOrGoOn(task, round, work, info);
  }

  /** §29: once the call goes on as a task, its end is the task's. */
  function answerOrGoOn(
    task: TaskOffer,
    round: Round,
    work: Promise<Outcome>,
    info: JsonObject,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      task.created.then((result) => resolve({ result: withServerInfo(result, info) }), reject);
      work.then((outcome) =>
        task.hasBegun() && outcome.kind !== 'asked'
          ? task.end(
              toAnswer(outcome, true, ({ result }) => ({ resultType: 'complete', ...result })),
            )
          : endRound(round, work, info).then(resolve, reject),
      );
    });
  }

  async function endRound(round: Round, work: Promise<Outcome>, info: JsonObject): Promise<Answer> {
    const outcome = await work;
    if (outcome.kind !== 'asked')
      return toAnswer(outcome, true, (result) => showResult(result, info));
    return { result: withServerInfo(await round.createInputRequired(), info) };
  }

  function showResult({ result, cache }: MethodResult, info: JsonObject): JsonObject {
    const hint = cache && { ttlMs: cache.ttlMs, cacheScope: cache.scope };
    const meta = addServerInfo(result, info);
    // Begins with a member, so that all results have one shape (docs/decisions/0024).
    const shown = { resultType: 'complete', ...result, ...hint, _meta: meta };
    // As it is written it goes on, between what is added.
    const kept = findTextWithout(result, hint === undefined ? ADDED : ADDED_WITH_HINT);
    if (kept === undefined) return shown;
    const added = `"_meta":${findText(meta) ?? writeExactJson(meta)}`;
    const behind = hint === undefined ? added : `${JSON.stringify(hint).slice(1, -1)},${added}`;
    const written = addMembers(kept, '"resultType":"complete"', behind);
    if (written !== undefined) noteWritten(shown, written);
    return shown;
  }
}

const declaresTasks = ({ extensions }: ClientCapabilities): boolean =>
  extensions?.[TASKS] !== undefined;

const requireTasks =
  (run: RunMethod): RunMethod =>
  async (params, context, call) => {
    checkDeclaresTasks(context.client);
    return run(params, context, call);
  };

function checkDeclaresTasks(client: ClientCapabilities): void {
  if (!declaresTasks(client)) failWithoutTasks('Tasks need a client');
}

const withServerInfo = (result: JsonObject, info: JsonObject): JsonObject => ({
  ...result,
  _meta: addServerInfo(result, info),
});

/** Every result says whose it is. */
function addServerInfo(result: object, info: JsonObject): JsonObject {
  if (!('_meta' in result)) return info;
  const { _meta: meta } = readExact(result);
  return isObject(meta) ? { ...meta, ...info } : info;
}

/** Anything that depends on the caller is private. */
const NOT_SHARED = { ttlMs: 10_000, scope: 'private' } as const;

/** Members that the gateway adds, and, of what may be kept, how long. */
const ADDED = ['resultType', '_meta'] as const;
const ADDED_WITH_HINT = [...ADDED, 'ttlMs', 'cacheScope'] as const;

/** The text of the result without these members; undefined if it is not known, or there are no others. */
function findTextWithout(result: object, names: readonly string[]): Written | undefined {
  const replaced = names.filter((name) => Object.hasOwn(result, name));
  if (replaced.length === Object.keys(result).length) return undefined;
  if (replaced.length === 0) return findWritten(result) ?? findText(result);
  const text = findText(result);
  return text && removeMembers(text, replaced);
}
