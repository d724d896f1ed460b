// §18.4: whether a server is up, as its callers and the operator are told.
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { UpstreamRuntime } from '../upstream.ts';
import type { EndReason } from './end-reason.ts';

export function createProgramState(
  { clock, log }: Pick<UpstreamRuntime, 'clock' | 'log'>,
  server: string,
) {
  const listeners = new Set<(isUp: boolean, reason: string) => void>();
  let isUp: boolean | undefined;

  function set(value: boolean, reason: string): void {
    if (isUp === value) return;
    isUp = value;
    for (const listener of listeners) listener(value, reason);
  }

  const warnOfProcess = createWarnThrottle(clock, (reason: EndReason, retryMs: number) =>
    log.warn(`A process of the MCP server ${server} is not available: ${tell(reason, retryMs)}`, {
      server,
      ...tellLastWords(reason),
    }),
  );

  return {
    /** Undefined where nothing is tried. */
    get isUp() {
      return isUp;
    },
    /** A process can be used. */
    setUp() {
      if (isUp !== true) log.info(`The MCP server ${server} answers`, { server });
      set(true, 'it answers');
    },
    /** None can; one is tried again in `retryMs`. */
    setDown(ended: EndReason, retryMs: number) {
      const reason = tell(ended, retryMs);
      if (isUp !== false)
        log.warn(`The MCP server ${server} is not available: ${reason}`, {
          server,
          ...tellLastWords(ended),
        });
      set(false, reason);
    },
    /** One of several, that of a user or a session, cannot be used: that concerns nobody else. At most a line a minute. */
    noteFailedProcess: warnOfProcess,
    /** Nothing is tried any more until it is needed. */
    forgetFailure() {
      if (isUp === false) isUp = undefined;
    },
    onChange: (listener: (isUp: boolean, reason: string) => void) => void listeners.add(listener),
  };
}

/** What `tell` adds, which soon is no longer true. */
export const NEXT_START = /; it is started again in \d+ s(?:\. |$)/;

/** For where the words stay, or nothing is started again. */
export const leaveOutNextStart = (message: string): string =>
  message.replace(NEXT_START, (said) => (said.endsWith('. ') ? '. ' : ''));

function tell({ what, advice }: EndReason, retryMs: number): string {
  const said = `${what}; it is started again in ${Math.ceil(retryMs / 1000)} s`;
  return advice === undefined ? said : `${said}. ${advice}`;
}

const tellLastWords = ({ lastWords = [] }: EndReason) =>
  lastWords.length > 0 && { errorOutput: lastWords };
