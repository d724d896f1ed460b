// Methods that only sessions have.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { SessionRecord } from '../../../core/store/store.ts';
import type { Call } from '../calls/call.ts';
import { isLogSeverity } from '../calls/context.ts';
import { readString } from '../calls/methods.ts';
import { type Arguments, type Catalog, LOG_SEVERITIES } from '../catalog/catalog.ts';
import type { SessionStreams } from './session-streams.ts';
import type { Sessions } from './sessions.ts';

export interface SessionMethodsDeps {
  readonly catalog: Catalog;
  readonly sessions: Sessions;
  /** Undefined without `MCP_STREAMS`. */
  readonly sessionStreams: SessionStreams | undefined;
}

export type SessionMethod = (
  params: Arguments,
  session: SessionRecord,
  call: Call,
) => Promise<void>;

/** All of them answer `{}`. */
export function createSessionMethods({
  catalog,
  sessions,
  sessionStreams,
}: SessionMethodsDeps): ReadonlyMap<string, SessionMethod> {
  const methods = new Map<string, SessionMethod>([['ping', async () => {}]]);

  if (catalog.offers.logging) {
    methods.set('logging/setLevel', async function setLevel({ level }, { sessionId }, { user }) {
      if (!isLogSeverity(level)) {
        fail('invalid_params', {
          details: `params.level must be one of ${LOG_SEVERITIES.join(', ')}`,
        });
      }
      await sessions.setLogLevel(sessionId, user, level);
    });
  }

  if (catalog.offers.subscriptions && sessionStreams !== undefined) {
    methods.set('resources/subscribe', async (params, { sessionId }) =>
      sessionStreams.subscribe(sessionId, readString(params, 'uri')),
    );
    methods.set('resources/unsubscribe', async (params, { sessionId }) =>
      sessionStreams.unsubscribe(sessionId, readString(params, 'uri')),
    );
  }

  return methods;
}
