// What goes wrong between the gateway and its proxy. It is not the server's fault, and nothing has reached the server.
import { getErrorCode, isNobodyThere, isShortage } from '../error-code.ts';

export type ProxyErrorCode =
  /** It answers, and lets nothing through to the server. */
  | 'ERR_PROXY_REFUSED'
  /** Nobody is there. */
  | 'ERR_PROXY_UNREACHABLE'
  /** It said nothing in time, closed the connection, or speaks something else. */
  | 'ERR_PROXY_FAILED';

export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly code: ProxyErrorCode;

  constructor(code: ProxyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Why there is no connection to the proxy. That this machine has no more files or ports stays what it is. */
export function toProxyError(cause: Error): Error {
  const code = getErrorCode(cause) ?? '';
  if (isShortage(code)) return cause;
  return isNobodyThere(code)
    ? new ProxyError('ERR_PROXY_UNREACHABLE', 'the proxy cannot be reached', { cause })
    : new ProxyError('ERR_PROXY_FAILED', 'the proxy cannot be used', { cause });
}
