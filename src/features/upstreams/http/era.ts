// §18.3: of which era a server is: `server/discover` is tried once, and what it said is remembered.
import type { Clock } from '../../../core/clock.ts';
import type { Era } from '../../mcp/protocol/revisions.ts';
import { readDiscoverResult } from '../messages/description.ts';
import { toStatelessParams } from '../messages/envelope.ts';
import { type UpstreamCaller, type UpstreamDescription, UpstreamError } from '../upstream.ts';
import type { CallOutcome } from './call.ts';
import type { Connection } from './connection.ts';
import { isDownStatus, toRefusal } from './failures.ts';
import { describeInHeaders } from './request-headers.ts';

export interface EraMemory {
  readonly current: Era | undefined;
  /** Asks the server; once for all that ask at the same time. */
  detect(caller: UpstreamCaller): Promise<Era>;
  /** Whether it is no longer the one that a request was sent in: asks again, unless that was just done. */
  hasChanged(caller: UpstreamCaller, before: Era): Promise<boolean>;
}

export interface EraMemoryDeps {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Called with what each `server/discover` said. */
  onDescription(description: UpstreamDescription): void;
}

const ASK_AGAIN_MS = 10_000;
/** A server that never answers what it does not know is given up on by then. */
const DISCOVER_MS = 5000;

export function createEraMemory(deps: EraMemoryDeps): EraMemory {
  const { connection, clock, onDescription } = deps;
  const timeoutMs = Math.min(deps.timeoutMs, DISCOVER_MS);
  let current: Era | undefined;
  let detecting: Promise<Era> | undefined;
  let askedAt = 0;

  async function ask(caller: UpstreamCaller): Promise<Era> {
    const outcome = await discover(caller);
    askedAt = clock.monotonic();
    const description = outcome?.kind === 'result' && readDiscoverResult(outcome.result);
    if (description) onDescription(description);
    current = description ? 'stateless' : 'session';
    return current;
  }

  /** Undefined for an answer that makes no sense: an older server may say anything. */
  async function discover(caller: UpstreamCaller): Promise<CallOutcome | undefined> {
    try {
      const outcome = await connection.call(caller, {
        method: DISCOVER.method,
        toParams: (id) => toStatelessParams(DISCOVER, id, caller.capabilities),
        headers: describeInHeaders(DISCOVER),
        timeoutMs,
        isHandshake: true,
      });
      if (outcome.kind === 'refused' && isFinal(outcome.status)) {
        throw toRefusal(outcome.status, outcome.headers);
      }
      return outcome;
    } catch (error) {
      if (error instanceof UpstreamError && error.failure === 'unavailable') throw error;
      return undefined;
    }
  }

  function detect(caller: UpstreamCaller): Promise<Era> {
    detecting ??= ask(caller).finally(() => {
      detecting = undefined;
    });
    return detecting;
  }

  return {
    get current() {
      return current;
    },
    detect,
    async hasChanged(caller, before) {
      // Another request, which was refused at the same time, may have asked.
      if (current !== before) return true;
      if (clock.monotonic() - askedAt < ASK_AGAIN_MS) return false;
      return (await detect(caller)) !== before;
    },
  };
}

const DISCOVER = {
  method: 'server/discover',
  params: {},
  signal: new AbortController().signal,
  trace: {},
  logLevel: undefined,
} as const;

/** What `initialize` would be told, too. */
const isFinal = (status: number): boolean =>
  [401, 403, 429].includes(status) || isDownStatus(status);
