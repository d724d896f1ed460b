// What a session hears of a catalogue while its stream is open.

import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createPassWhenKnown } from '../../platform/pass-when-known.ts';
import { isLessSevere, isLogSeverity, type LogSeverity } from '../../protocol/methods.ts';
import type { Owner } from '../../store/store.ts';
import type { CatalogListener } from '../catalog/catalog.ts';
import type { NotificationStream } from '../streaming/notification-streams.ts';

/** What the listeners of all streams have in common. */
export interface ListenerSurroundings {
  readonly clock: Clock;
  readLevel(sessionId: string, user: Owner | undefined): Promise<LogSeverity | undefined>;
  tellUpdate(sessionId: string, stream: NotificationStream, uri: string): void;
  tellCompletion(sessionId: string, stream: NotificationStream, elicitationId: string): void;
}

/** A class: thousands of them stand for minutes, and closures would take four times the memory. */
export class SessionListener implements CatalogListener {
  private readonly stream: NotificationStream;
  private readonly sessionId: string;
  private readonly user: Owner | undefined;
  private readonly surroundings: ListenerSurroundings;
  /** Most sessions hear no message of a server: made for the first one. */
  private log: ((params: JsonObject) => void) | undefined;

  constructor(
    stream: NotificationStream,
    sessionId: string,
    user: Owner | undefined,
    surroundings: ListenerSurroundings,
  ) {
    this.stream = stream;
    this.sessionId = sessionId;
    this.user = user;
    this.surroundings = surroundings;
  }

  listChanged(list: 'tools' | 'prompts' | 'resources'): void {
    this.stream.send({ method: `notifications/${list}/list_changed`, params: {} });
  }

  resourceUpdated(uri: string): void {
    this.surroundings.tellUpdate(this.sessionId, this.stream, uri);
  }

  logged(params: JsonObject): void {
    const { stream, sessionId, user, surroundings } = this;
    this.log ??= createStreamLog(surroundings.clock, stream, () =>
      surroundings.readLevel(sessionId, user),
    );
    this.log(params);
  }

  elicitationCompleted(elicitationId: string): void {
    this.surroundings.tellCompletion(this.sessionId, this.stream, elicitationId);
  }
}

// MCP "Logging": messages that belong to no call, on the stream of a session.

interface LogMessage {
  readonly level: LogSeverity;
  readonly logger: string | undefined;
  readonly data: unknown;
}

/**
 * Takes params of `notifications/message` as a server wrote them; what does not fit is dropped. `readLevel` says what the
 * session's client asked for last; undefined where the session has ended.
 */
function createStreamLog(
  clock: Clock,
  stream: NotificationStream,
  readLevel: () => Promise<LogSeverity | undefined>,
): (params: JsonObject) => void {
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
