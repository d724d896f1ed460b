import type { Facts, Log, LogLevel } from '../../platform/log.ts';

export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  readonly facts: Facts;
}

/** A log for parts of the gateway that say only there what they found. */
export function createCollectingLog(): {
  readonly log: Log;
  readonly entries: readonly LogEntry[];
} {
  const entries: LogEntry[] = [];
  const collectAt =
    (level: LogLevel) =>
    (message: string, facts: Facts = {}): void =>
      void entries.push({ level, message, facts });
  return {
    entries,
    log: {
      error: collectAt('error'),
      warn: collectAt('warn'),
      info: collectAt('info'),
      debug: () => {},
      isWritten: (level) => level !== 'debug',
    },
  };
}
