// Parts of the session era that stand for as long as the process does.
import type { Runtime } from '../../runtime/runtime.ts';
import { buildChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { Callers } from '../calls/call.ts';
import type { Calls } from '../calls/run-call.ts';
import type { NotificationStreams } from '../streaming/notification-streams.ts';
import { createKeptStreams, type KeptStreams } from './kept-streams.ts';
import { createSessionQuestions, type SessionQuestions } from './questions.ts';
import { isReplicaMessage, type McpReplicas } from './replica-message.ts';
import { createResumptions, type Resumptions } from './resumptions.ts';
import {
  createFindStreamOwner,
  createSessionStreams,
  type FindStreamOwner,
  type SessionStreams,
} from './session-streams.ts';
import { type ClientSessions, createSessions } from './sessions.ts';
import { createStoredStreams } from './stored-streams.ts';

export interface SessionServices {
  readonly calls: Calls;
  readonly sessions: ClientSessions;
  readonly replicas: McpReplicas;
  readonly questions: SessionQuestions;
  readonly keptStreams: KeptStreams;
  readonly resumptions: Resumptions;
  /** Undefined without `MCP_STREAMS`. */
  readonly sessionStreams: SessionStreams | undefined;
  readonly findStreamOwner: FindStreamOwner;
  close(): void;
}

export function openSessionServices(
  runtime: Runtime,
  calls: Calls,
  notificationStreams: NotificationStreams,
  sealPerson: Callers['sealPerson'],
): SessionServices {
  const { streams: hasStreams, sessions: settings } = runtime.config.mcp;
  const sessions = createSessions(runtime, sealPerson);
  const stopSweeping = sessions.startSweeping();
  const channel = buildChannelName(settings.keyPrefix);
  const replicas = createReplicas(runtime, channel, isReplicaMessage);
  const questions = createSessionQuestions(runtime, replicas);
  const stored = createStoredStreams(runtime);
  const keptStreams = createKeptStreams(runtime, stored, replicas);
  return {
    calls,
    sessions,
    replicas,
    questions,
    keptStreams,
    resumptions: createResumptions(runtime, keptStreams, stored, replicas),
    sessionStreams: hasStreams
      ? createSessionStreams(runtime, notificationStreams, replicas, {
          sessions,
          questions,
          keptStreams,
        })
      : undefined,
    findStreamOwner: createFindStreamOwner(calls.findClientId),
    close() {
      stopSweeping();
      replicas.close();
    },
  };
}
