// Methods that only sessions have. Where one is not available (protocol/methods.ts), it is not asked for.
import { fail } from '../../errors/gateway-error.ts';
import { isLogSeverity, LOG_SEVERITIES } from '../../protocol/log-severity.ts';
import type { SessionRecord } from '../../store/store.ts';
import type { Call } from '../calls/call.ts';
import { readString } from '../calls/methods.ts';
import type { Arguments } from '../catalog/catalog.ts';
import type { FindStreamOwner, SessionStreams } from './session-streams.ts';
import type { Sessions } from './sessions.ts';

export interface SessionMethodsDeps {
  readonly sessions: Sessions;
  /** Undefined without `MCP_STREAMS`. */
  readonly sessionStreams: SessionStreams | undefined;
  readonly findStreamOwner: FindStreamOwner;
}

export type SessionMethod = (
  params: Arguments,
  session: SessionRecord,
  call: Call,
) => Promise<void>;

/** By the method's name; all of them answer `{}`. */
export type SessionMethods = Readonly<Record<string, SessionMethod>>;

export function createSessionMethods({
  sessions,
  sessionStreams,
  findStreamOwner,
}: SessionMethodsDeps): SessionMethods {
  return {
    async ping() {},
    async 'logging/setLevel'({ level }, { sessionId }, { user }) {
      if (!isLogSeverity(level)) {
        fail('invalid_params', {
          details: `params.level must be one of ${LOG_SEVERITIES.join(', ')}`,
        });
      }
      await sessions.setLogLevel(sessionId, user, level);
    },
    async 'resources/subscribe'(params, session, call) {
      const uri = readString(params, 'uri');
      await sessionStreams?.subscribe(await findStreamOwner(call, session), uri);
    },
    async 'resources/unsubscribe'(params, session, call) {
      const uri = readString(params, 'uri');
      await sessionStreams?.unsubscribe(await findStreamOwner(call, session), uri);
    },
  };
}
