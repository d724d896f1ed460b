// MCP "Logging": messages that belong to no call, on the stream of a session.
import type { Clock } from '../../../core/clock.ts';
import type { JsonObject } from '../../../core/json.ts';
import { isLessSevere, isLogSeverity, type LogSeverity } from '../../../core/log-severity.ts';
import { createPassWhenKnown } from '../../../core/pass-when-known.ts';
import type { NotificationStream } from '../streaming/notification-streams.ts';

export interface StreamLogDeps {
  readonly clock: Clock;
  readonly stream: Pick<NotificationStream, 'sendIfRoom'>;
  /** What the session's client asked for last; undefined where the session has ended. */
  readLevel(): Promise<LogSeverity | undefined>;
}

interface LogMessage {
  readonly level: LogSeverity;
  readonly logger: string | undefined;
  readonly data: unknown;
}

/** Takes params of `notifications/message` as a server wrote them; what does not fit is dropped. */
export function createStreamLog(deps: StreamLogDeps): (params: JsonObject) => void {
  const { clock, stream, readLevel } = deps;
  const passWhenKnown = createPassWhenKnown<LogMessage, LogSeverity | undefined>({
    clock,
    learn: readLevel,
    pass(params, wanted) {
      if (wanted === undefined || isLessSevere(params.level, wanted)) return;
      stream.sendIfRoom({ method: 'notifications/message', params });
    },
  });

  return function log({ level, logger, data }) {
    if (!isLogSeverity(level)) return;
    passWhenKnown({ level, logger: typeof logger === 'string' ? logger : undefined, data });
  };
}
