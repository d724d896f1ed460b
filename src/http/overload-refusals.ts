// §12: the replies to calls that an overloaded process refuses, made once.
import type { Endpoint } from '../core/endpoint.ts';
import { GatewayError } from '../core/errors/gateway-error.ts';
import { renderError } from '../core/errors/render.ts';
import type { Reply, ReplyHeaders } from '../core/message.ts';
import { type HeaderList, toHeaderList } from './reply-headers.ts';

export interface OverloadRefusal {
  /** Value of the metrics' label `route`: the path of the endpoint, whatever the caller wrote in place of its parameter. */
  readonly route: string;
  readonly reply: Reply;
  readonly headers: HeaderList;
}

/** By path, or what stands before its parameter. Documents, pages and probes are served: they cost little more than to refuse them. */
export type OverloadRefusals = ReadonlyMap<string, OverloadRefusal>;

export function createOverloadRefusals(
  endpoints: readonly Endpoint[],
  securityHeaders: ReplyHeaders,
): OverloadRefusals {
  const error = new GatewayError('overloaded', { headers: { 'Retry-After': '1' } });
  const limited = endpoints.filter(({ kind }) => kind !== 'open');
  return new Map(
    limited.map(({ path, hasParameter, errors, headers: ownHeaders }) => {
      const reply = renderError(error, errors);
      const headers = { ...securityHeaders, ...ownHeaders, ...reply.headers, Vary: 'Origin' };
      // At warn the log says once what happens (overload.ts).
      const logged = { key: error.key, message: error.message, logLevel: 'debug' as const };
      const key = hasParameter === undefined ? path : getFolder(path);
      return [
        key,
        { route: path, reply: { ...reply, error: logged }, headers: toHeaderList(headers) },
      ];
    }),
  );
}

/** Undefined for what is served all the same. */
export const findByPath = (refusals: OverloadRefusals, path: string): OverloadRefusal | undefined =>
  refusals.get(path) ?? refusals.get(getFolder(path));

const getFolder = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);
