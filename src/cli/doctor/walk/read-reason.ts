// §7.1: the gateway's own errors in JSON-RPC.
import { isObject } from '../../../platform/json.ts';
import type { Answer } from '../network/probe.ts';

/** `data` of a JSON-RPC error; empty where there is none. */
export function readErrorData({ json }: Answer): Readonly<Record<string, unknown>> {
  const error = json?.error;
  return isObject(error) && isObject(error.data) ? error.data : {};
}

/** The word by which programs tell refusals apart. */
export function readReason(answer: Answer): string | undefined {
  const { reason } = readErrorData(answer);
  return typeof reason === 'string' ? reason : undefined;
}
