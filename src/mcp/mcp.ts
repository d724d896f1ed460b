// The MCP feature as a whole: both eras over one catalogue.

import { GatewayError } from '../errors/gateway-error.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Callers } from './calls/call.ts';
import { createCalls } from './calls/run-call.ts';
import type { CallControl } from './calls/run-target.ts';
import type { Catalogs } from './catalog/served-catalog.ts';
import { createMcpEndpoints } from './endpoints.ts';
import { createSessionEraHandler } from './session/session-era.ts';
import { openSessionServices } from './session/session-services.ts';
import { createStatelessEraHandler } from './stateless/stateless-era.ts';
import { createNotificationStreams } from './streaming/notification-streams.ts';
import { createTasks } from './tasks/tasks.ts';

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

export function createMcp(
  runtime: Runtime,
  catalogs: Catalogs,
  control: CallControl,
  callers: Callers,
): Mcp {
  const notificationStreams = createNotificationStreams(runtime, callers.endedGrants);
  const calls = createCalls(runtime, control, callers);
  const tasks = createTasks(runtime, control);
  const services = openSessionServices(runtime, calls, notificationStreams, callers.sealPerson);
  const { sessions, sessionStreams, keptStreams, resumptions, questions } = services;
  const eras = {
    session: createSessionEraHandler(services, catalogs.all.endSession),
    stateless: createStatelessEraHandler(runtime, calls, tasks, notificationStreams),
  };

  return {
    endpoints: createMcpEndpoints(catalogs, eras, services, callers.getChallenge),
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
    close: services.close,
  };
}

/** The answer to calls that took longer than a process that stops could wait. */
const STOPPED = new GatewayError('stream_lost', {
  details:
    'The replica that ran this call was stopped before it ended. The call may have run: look before you call again.',
});
