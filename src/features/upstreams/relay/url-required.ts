// MCP 2025-11-25 "URL Elicitation Required Errors": a call that fails until its user has opened a page. Only clients
// that declared elicitation by URL know what to do with it.
import type { JsonRpcErrorObject } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import { nameAskerInMessage } from './name-asker.ts';

export const isUrlRequired = ({ code }: JsonRpcErrorObject): boolean => code === -32042;

/** The error, whose messages for the user say which server asks. */
export function nameAskerInError(server: string, error: JsonRpcErrorObject): JsonRpcErrorObject {
  const { data } = error;
  if (!isObject(data) || !Array.isArray(data.elicitations)) return error;
  const elicitations = data.elicitations.map((one: unknown) =>
    isObject(one) ? nameAskerInMessage(server, one) : one,
  );
  return { ...error, data: { ...data, elicitations } };
}

/** For the model of a client that cannot open pages. */
export const tellUrlRequired = (server: string): string =>
  `${server} needs its user to open a page first, for example to log in or to agree, and this client cannot be sent there. Use a client that supports elicitation by URL, or ask whoever runs the gateway for another way.`;
