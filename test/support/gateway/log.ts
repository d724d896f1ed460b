import { createLog, type Log } from '../../../src/platform/log.ts';

export type LogLine = Readonly<Record<string, unknown>> & {
  readonly level: string;
  readonly msg: string;
};

/** A log and the lines written to it, parsed: a line that is no JSON object fails the test. */
export function collectLog(): { readonly log: Log; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { log: createLog('debug', { destination: { write } }), lines };
}
