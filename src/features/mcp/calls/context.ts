// What a tool, prompt or resource gets of one call, whatever the era.
import { fail } from '../../../core/errors/gateway-error.ts';
import type { GatewayRequest } from '../../../core/message.ts';
import type { UserContext } from '../../../core/user-context.ts';
import {
  type Context,
  LOG_SEVERITIES,
  type LogSeverity,
  type ServiceInfo,
} from '../catalog/catalog.ts';
import type { Ask, ClientCapabilities, ClientRequests } from '../catalog/client-requests.ts';
import { isRequestId, isShort, metaOf } from '../protocol/json-rpc.ts';
import { traceOf } from '../protocol/trace-context.ts';
import type { Line } from '../streaming/response-stream.ts';

export interface Circumstances {
  /** Whether the method's answer may be a question. */
  readonly mayAsk: boolean;
  readonly params: unknown;
  readonly user: UserContext | undefined;
  readonly service: ServiceInfo;
  client(): ClientCapabilities;
  readonly line: Line;
  readonly ask: Ask;
  /** Least severe message that the client wants; undefined for none. */
  readonly logLevel: LogSeverity | undefined;
  /** Made on first use: most calls never ask for it. */
  signal(): AbortSignal;
  /** Whether the call ends with a question, whatever its tool returns. */
  isAsking(): boolean;
}

/** What the methods get; authors see the Context in it. */
export interface CallContext extends Context {
  isAsking(): boolean;
}

export function createContext(given: Circumstances): CallContext {
  // The params are not kept: a call that waits keeps what its tool has of them (decisions 10).
  const { params, mayAsk, user, service, client, line, ask, signal, logLevel, isAsking } = given;
  const asked = new Set<string>();
  const meta = metaOf(params);
  const trace = traceOf(meta);
  const { progressToken } = meta;
  if (isRequestId(progressToken) && !isShort(progressToken)) {
    fail('invalid_params', { details: 'A progressToken has at most 256 characters' });
  }

  const askOnce: Ask = async (requests) => {
    // MCP 2026-07-28 "Supported Requests"; a list or a completion that asks would not be portable.
    if (!mayAsk) {
      throw new Error('Only tools, prompts and resources may ask');
    }
    for (const key of Object.keys(requests)) {
      // In the stateless era the second would get the answer to the first.
      if (asked.has(key)) throw new Error(`"${key}" was asked twice; each question has its key`);
      asked.add(key);
    }
    return ask(requests);
  };

  const context = {
    __proto__: ON_DEMAND,
    readClient: client,
    readSignal: signal,
    user,
    service,
    ask(requests: ClientRequests) {
      const answers = askOnce(requests);
      // A tool may look at it later, or never: that must not end the process.
      answers.catch(() => {});
      return answers;
    },
    isAsking,
    trace,
    progress(done: number, total?: number, message?: string) {
      if (!isRequestId(progressToken)) return;
      const params = { progressToken, progress: done, total, message };
      line.say({ method: 'notifications/progress', params });
    },
    log(level: LogSeverity, data: unknown, logger?: string) {
      if (logLevel === undefined || isLessSevere(level, logLevel)) return;
      line.say({ method: 'notifications/message', params: { level, logger, data } });
    },
  };
  // The compiler does not know that members of the prototype are there.
  return context as unknown as CallContext;
}

/**
 * What is made when a tool looks at it. On a prototype that all calls share: with accessors of their
 * own they outlived their calls, and collecting them was a quarter of a call's work.
 */
const ON_DEMAND = {
  get client(): ClientCapabilities {
    return onDemand(this).readClient();
  },
  get signal(): AbortSignal {
    return onDemand(this).readSignal();
  },
};

interface OnDemand {
  readClient(): ClientCapabilities;
  readSignal(): AbortSignal;
}

const onDemand = (context: unknown): OnDemand => context as OnDemand;

const isLessSevere = (level: LogSeverity, than: LogSeverity): boolean =>
  LOG_SEVERITIES.indexOf(level) < LOG_SEVERITIES.indexOf(than);

export const isLogSeverity = (value: unknown): value is LogSeverity =>
  LOG_SEVERITIES.some((severity) => severity === value);

/** The call's signal: aborted when the caller hangs up, or by `abort`. */
export function createSignal(request: GatewayRequest): {
  readonly signal: () => AbortSignal;
  readonly abort: () => void;
} {
  let controller: AbortController | undefined;
  let aborted = false;
  return {
    signal() {
      if (controller !== undefined) return controller.signal;
      controller = new AbortController();
      const own = controller;
      const hangUp = request.signal();
      if (aborted || hangUp.aborted) own.abort();
      else hangUp.addEventListener('abort', () => own.abort(), { once: true });
      return own.signal;
    },
    abort() {
      aborted = true;
      controller?.abort();
    },
  };
}
