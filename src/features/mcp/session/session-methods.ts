// Methods that only sessions have.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isLogSeverity, LOG_SEVERITIES } from '../../../core/log-severity.ts';
import type { SessionRecord } from '../../../core/store/store.ts';
import type { Call } from '../calls/call.ts';
import { readString } from '../calls/methods.ts';
import type { View } from '../calls/view.ts';
import type { Arguments } from '../catalog/catalog.ts';
import { type SessionStreams, toStreamOwner } from './session-streams.ts';
import type { Sessions } from './sessions.ts';

export interface SessionMethodsDeps {
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
export interface SessionMethods {
  /** Undefined for one that sessions of this path do not have. */
  find(view: View, method: string): SessionMethod | undefined;
}

export function createSessionMethods({
  sessions,
  sessionStreams,
}: SessionMethodsDeps): SessionMethods {
  const always = new Map<string, SessionMethod>([['ping', async () => {}]]);
  const withLogging = new Map<string, SessionMethod>([
    [
      'logging/setLevel',
      async function setLevel({ level }, { sessionId }, { user }) {
        if (!isLogSeverity(level)) {
          fail('invalid_params', {
            details: `params.level must be one of ${LOG_SEVERITIES.join(', ')}`,
          });
        }
        await sessions.setLogLevel(sessionId, user, level);
      },
    ],
  ]);
  const withSubscriptions = new Map<string, SessionMethod>(
    sessionStreams && [
      [
        'resources/subscribe',
        async (params, session, call) =>
          sessionStreams.subscribe(toStreamOwner(call, session), readString(params, 'uri')),
      ],
      [
        'resources/unsubscribe',
        async (params, session, call) =>
          sessionStreams.unsubscribe(toStreamOwner(call, session), readString(params, 'uri')),
      ],
    ],
  );

  return {
    find: ({ catalog: { offers } }, method) =>
      always.get(method) ??
      (offers.logging ? withLogging.get(method) : undefined) ??
      (offers.subscriptions ? withSubscriptions.get(method) : undefined),
  };
}
