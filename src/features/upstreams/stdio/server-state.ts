// §18.4: whether a server is up, as its callers and the operator are told.
import type { Log } from '../../../core/log.ts';
import type { EndReason } from './end-reason.ts';

export interface ServerState {
  /** Undefined where nothing is tried. */
  readonly isUp: boolean | undefined;
  /** A process can be used. */
  setUp(): void;
  /** None can; one is tried again in `retryMs`. */
  setDown(reason: EndReason, retryMs: number): void;
  /** Nothing is tried any more until it is needed. */
  forgetFailure(): void;
  onChange(listener: (isUp: boolean, reason: string) => void): void;
}

export function createServerState(server: string, log: Log): ServerState {
  const listeners = new Set<(isUp: boolean, reason: string) => void>();
  let isUp: boolean | undefined;

  function set(value: boolean, reason: string): void {
    if (isUp === value) return;
    isUp = value;
    for (const listener of listeners) listener(value, reason);
  }

  return {
    get isUp() {
      return isUp;
    },
    setUp() {
      if (isUp !== true) log.info(`The MCP server ${server} answers`, { server });
      set(true, 'it answers');
    },
    setDown({ what, advice, lastWords = [] }, retryMs) {
      const said = `${what}; it is started again in ${Math.ceil(retryMs / 1000)} s`;
      const reason = advice === undefined ? said : `${said}. ${advice}`;
      if (isUp !== false)
        log.warn(`The MCP server ${server} is not available: ${reason}`, {
          server,
          ...(lastWords.length > 0 && { errorOutput: lastWords }),
        });
      set(false, reason);
    },
    forgetFailure() {
      if (isUp === false) isUp = undefined;
    },
    onChange: (listener) => void listeners.add(listener),
  };
}
