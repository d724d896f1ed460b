// MCP "Logging" (session era): a process has one level for all of its calls.
import { LOG_SEVERITIES, type LogSeverity } from '../../../core/log-severity.ts';
import type { RunningServer } from './server-run.ts';

/** Milliseconds; nobody waits for it. */
const TIMEOUT_MS = 60_000;

/** Sets the least severe level that is wanted by this call or by one that is under way. */
export type WantLogLevel = (running: RunningServer, level: LogSeverity | undefined) => void;

export function createWantLogLevel(): WantLogLevel {
  const levels = new WeakMap<RunningServer, LogSeverity>();

  return function wantLogLevel(running, level) {
    const { connection, description } = running;
    const canSet = description.era === 'session' && description.capabilities.logging !== undefined;
    if (level === undefined || !canSet) return;
    const wanted = new Set([level, ...connection.listCalls().map(({ logLevel }) => logLevel)]);
    const least = LOG_SEVERITIES.find((severity) => wanted.has(severity));
    if (least === undefined || levels.get(running) === least) return;
    levels.set(running, least);
    // Sent before the call: the server reads it first. Without it the level stays.
    connection.ask('logging/setLevel', { level: least }, TIMEOUT_MS).catch(() => {});
  };
}
