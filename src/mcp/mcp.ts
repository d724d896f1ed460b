// The MCP feature as a whole: both eras over one catalogue.

import type { GetChallenge } from '../auth/bearer.ts';
import type { McpConfig } from '../config/groups/mcp.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { GetProviderToken, UserContext } from '../endpoint/message.ts';
import { GatewayError } from '../errors/gateway-error.ts';
import type { EndedGrants } from '../grants/ended-grants.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import type { Guards } from '../policy/guards/guards.ts';
import type { Policies, Verdict } from '../policy/policy.ts';
import { buildChannelName } from '../store/keys.ts';
import { createReplicas } from '../store/replicas/replicas.ts';
import type { Seal } from '../store/seal/seal.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { type CallObserver, joinObservers } from './calls/call.ts';
import { createRunCall, type FindClientId } from './calls/run-call.ts';
import { countCalls, createCountCall } from './calls/running-calls.ts';
import type { ServiceInfo } from './catalog/catalog.ts';
import type { Catalogs } from './catalog/served-catalog.ts';
import { type AskFirst, createRunTarget } from './control/run-target.ts';
import { createMcpEndpoints } from './endpoints.ts';
import { auditCalls, type DescribeUser } from './observers/audit-calls.ts';
import { traceCalls } from './observers/trace-calls.ts';
import { createKeptStreams } from './session/kept-streams.ts';
import { createQuestions } from './session/questions.ts';
import { isReplicaMessage } from './session/replica-message.ts';
import { createResumptions } from './session/resumptions.ts';
import { createSessionEra } from './session/session-era.ts';
import { createFindStreamOwner, createSessionStreams } from './session/session-streams.ts';
import { createSessions, type SealPerson } from './session/sessions.ts';
import { createStoredStreams } from './session/stored-streams.ts';
import { createRequestState } from './stateless/multi-round-trip.ts';
import { createStatelessEra } from './stateless/stateless-era.ts';
import { createNotificationStreams } from './streaming/notification-streams.ts';
import { createTasks } from './tasks/tasks.ts';

export interface McpDeps {
  readonly catalogs: Catalogs;
  readonly service: ServiceInfo;
  readonly store: Store;
  /** For what goes through the client, or from replica to replica. */
  getSeal(): Promise<Seal>;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Headers of a 401 at a path; undefined when nobody has to log in. */
  readonly getChallenge: GetChallenge | undefined;
  /** Who may use what; undefined where everybody may use everything. */
  readonly policies: Pick<Policies, 'judge'> | undefined;
  /** Those of the configuration as it is now; undefined where it has none. */
  getGuards(): Guards | undefined;
  readonly askFirst: AskFirst;
  /** Whether requests have traces. */
  readonly isTraced: boolean;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  /** What the audit log has of users; undefined without `AUDIT_CLAIMS`. */
  readonly describeUser: DescribeUser | undefined;
  readonly findClientId: FindClientId;
  readonly getProviderToken: GetProviderToken;
  /** Undefined without operators. */
  readonly sealPerson: SealPerson | undefined;
  /** `OIDC_ISSUER`; undefined without a provider. */
  readonly defaultIssuer: string | undefined;
  /** Called with each request of a user that needs no session; undefined without operators. */
  readonly noteStatelessUser: ((user: UserContext) => void) | undefined;
  /** Undefined where the gateway issues no tokens of its own. */
  readonly endedGrants: Pick<EndedGrants, 'listen' | 'hasEnded'> | undefined;
  /** Of the process; 0 for no limit. */
  readonly maxConnections: number;
}

export interface Mcp {
  readonly endpoints: readonly Endpoint[];
  /** The headers of MCP that pages of allowed origins may send, and those that they may read. */
  readonly corsHeaders: {
    readonly request: readonly string[];
    readonly requestPrefix: string | undefined;
    readonly response: readonly string[];
  };
  /** Live sessions in the store (the gauge). */
  countSessions(): Promise<number>;
  /** Ends anybody's session, and its stream. False when there is none. What servers behind the gateway keep for it expires there. */
  endSession(id: string): Promise<boolean>;
  /** Ends what would wait on: open streams, whose clients come again elsewhere, and questions. */
  stopWaiting(): void;
  /** Resolves once no call is under way whose client may come back for its answer (§15.1). */
  drainStreams(): Promise<void>;
  /** Ends those calls, and puts into the store what their clients may come back for. */
  keepStreams(): Promise<void>;
  /** Lets tasks that run here end for so long; those that do not are ended. */
  endTasks(graceMs: number): Promise<void>;
  close(): void;
}

const REQUEST_HEADERS = [
  'mcp-session-id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Last-Event-ID',
];
const RESPONSE_HEADERS = ['mcp-session-id', 'X-Session-Expires-At'];

export function createMcp(config: McpConfig, deps: McpDeps): Mcp {
  const { catalogs, service, store, getSeal, clock, metrics, log, getChallenge, findClientId } =
    deps;
  const { streams: hasStreams } = config;
  const { keyPrefix: sessionKeyPrefix } = config.sessions;
  const sessions = createSessions(config.sessions, {
    store,
    clock,
    metrics,
    log,
    sealPerson: deps.sealPerson,
    defaultIssuer: deps.defaultIssuer,
  });
  const stopSweeping = sessions.startSweeping();
  const channel = buildChannelName(sessionKeyPrefix);
  const replicas = createReplicas({
    store,
    getSeal,
    clock,
    log,
    metrics,
    channel,
    isMessage: isReplicaMessage,
  });
  const questions = createQuestions({ replicas, store, clock, sessionKeyPrefix });
  const stored = createStoredStreams({ store, getSeal, sessionKeyPrefix });
  const keptStreams = createKeptStreams({ stored, replicas, clock, log });
  const resumptions = createResumptions({
    kept: keptStreams,
    stored,
    replicas,
    isShared: store.isShared,
    clock,
    log,
  });
  const notificationStreams = createNotificationStreams(deps);
  const sessionStreams = hasStreams
    ? createSessionStreams({
        store,
        replicas,
        notificationStreams,
        keptStreams,
        sessions,
        questions,
        clock,
        log,
        sessionKeyPrefix,
      })
    : undefined;
  const tasks = createTasks({ ...deps, config: config.tasks, keyPrefix: sessionKeyPrefix });
  const observer = joinObservers(listObservers(deps), log);
  const countCall = createCountCall(config, clock, deps.endedGrants);
  const judge = deps.policies?.judge ?? allowAll;
  const runTarget = createRunTarget({ ...deps, judge });
  const runCall = createRunCall({ ...deps, judge, runTarget, observer, countCall });
  const findStreamOwner = createFindStreamOwner(findClientId);
  const eras = {
    session: createSessionEra({
      runCall,
      findClientId,
      countCall,
      findStreamOwner,
      sessions,
      replicas,
      questions,
      keptStreams,
      sessionStreams,
      closeSession: catalogs.all.endSession,
      service,
    }),
    stateless: createStatelessEra({
      runCall,
      countCall,
      findClientId,
      requestState: createRequestState(getSeal, clock),
      tasks,
      notificationStreams,
      hasStreams,
      service,
      getProviderToken: deps.getProviderToken,
      getGuards: deps.getGuards,
    }),
  };

  const endpoints = createMcpEndpoints({
    catalogs,
    observer,
    eras,
    sessions,
    sessionStreams,
    resumptions,
    endKeptStreams: keptStreams.endSession,
    findStreamOwner,
    getChallenge,
  });

  return {
    endpoints,
    corsHeaders: {
      request: [...REQUEST_HEADERS, ...catalogs.all.mirrorHeaders],
      // Servers behind the gateway name arguments to repeat at any time.
      requestPrefix: catalogs.all.offers.listChanges === true ? 'mcp-param-' : undefined,
      response: RESPONSE_HEADERS,
    },
    countSessions: sessions.countActive,
    async endSession(id) {
      const hasEnded = await sessions.endAnybodys(id);
      if (hasEnded) {
        keptStreams.endSession(id);
        await sessionStreams?.end(id);
      }
      return hasEnded;
    },
    stopWaiting() {
      keptStreams.startStopping();
      resumptions.close();
      notificationStreams.disconnect();
      questions.close();
    },
    drainStreams: keptStreams.drain,
    keepStreams() {
      notificationStreams.close();
      return keptStreams.stop(STOPPED);
    },
    endTasks: tasks.close,
    close() {
      stopSweeping();
      replicas.close();
    },
  };
}

const ALLOWED: Verdict = { kind: 'allowed' };
const allowAll = (): Verdict => ALLOWED;

/** What those are told whose calls took longer than a process that stops could wait. */
const STOPPED = new GatewayError('stream_lost', {
  details:
    'The replica that ran this call was stopped before it ended. The call may have run: look before you call again.',
});

/** Whoever is told of calls, in this order. */
const listObservers = ({
  metrics,
  clock,
  audit,
  describeUser,
  isTraced,
  noteStatelessUser,
}: McpDeps): readonly CallObserver[] => [
  ...(isTraced ? [traceCalls] : []),
  countCalls({ metrics, clock }),
  ...(audit === undefined ? [] : [auditCalls(audit, clock, describeUser)]),
  ...(noteStatelessUser === undefined ? [] : [noteUsers(noteStatelessUser)]),
];

/** Users whose calls need no session, which are seen by their requests alone. */
const noteUsers = (noteUser: (user: UserContext) => void): CallObserver => ({
  admit({ era, id, user }) {
    if (era === 'stateless' && id !== undefined && user !== undefined) noteUser(user);
  },
});
