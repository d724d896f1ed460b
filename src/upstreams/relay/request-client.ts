// How what a server says of a call reaches its client. All of it is hostile input: what does not fit is dropped.

import type { Context } from '../../mcp/catalog/catalog.ts';
import type { JsonObject } from '../../platform/json.ts';
import { isLogSeverity } from '../../protocol/log-severity.ts';
import type { RequestClient } from './server-request.ts';

/** The client that waits for the call's result. */
export function toRequestClient(
  context: Context,
  answer: RequestClient['answer'],
  completeElicitation?: RequestClient['completeElicitation'],
): RequestClient {
  const { logLevel, wantsProgress, signal } = context.relay;
  return {
    signal,
    trace: context.trace,
    logLevel,
    wantsProgress,
    progress: (params) => passProgress(context, params),
    log: (params) => passLog(context, params),
    answer,
    completeElicitation,
  };
}

/** The progress token is the gateway's own towards the server; the context has the client's. */
export function passProgress(
  context: Pick<Context, 'progress'>,
  { progress, total, message }: JsonObject,
): void {
  if (typeof progress !== 'number') return;
  context.progress(
    progress,
    typeof total === 'number' ? total : undefined,
    typeof message === 'string' ? message : undefined,
  );
}

export function passLog(context: Pick<Context, 'log'>, { level, data, logger }: JsonObject): void {
  if (!isLogSeverity(level)) return;
  context.log(level, data, typeof logger === 'string' ? logger : undefined);
}
