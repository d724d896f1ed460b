// §4.12: the Host check, against DNS rebinding.
import type { Config } from '../core/config/config.ts';
import { fail } from '../core/errors/gateway-error.ts';
import { truncateForLog } from '../core/log.ts';
import { LOOPBACK_HOSTS } from '../core/loopback.ts';

const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/;
/** Of those that are allowed, in a line of the log. */
const MAX_SHOWN_HOSTS = 10;

/**
 * Checks the `Host` header (several arrive joined by commas) and, for a target in absolute form,
 * its authority. A probe calls by any name, or by HTTP/1.0 without one.
 *
 * @throws GatewayError `bad_request` unless there is exactly one Host, `invalid_host` for a
 * foreign one.
 */
export type HostCheck = (
  host: string | undefined,
  authority: string | undefined,
  isProbe: boolean,
) => void;

export function createHostCheck({ server, http }: Pick<Config, 'server' | 'http'>): HostCheck {
  const base = new URL(server.baseUrl);
  const defaultPort = base.protocol === 'https:' ? '443' : '80';
  const basePort = base.port || defaultPort;
  const namesWithAnyPort = new Set(server.environment === 'production' ? [] : LOOPBACK_HOSTS);
  const exactHosts = new Set([`${base.hostname}:${basePort}`]);
  for (const entry of http.allowedHosts) {
    const [, name = '', port] = HOST.exec(entry) ?? [];
    if (port === undefined) namesWithAnyPort.add(name);
    else exactHosts.add(`${name}:${port}`);
  }

  /** As an operator writes them. */
  const expected = [base.host, ...http.allowedHosts].slice(0, MAX_SHOWN_HOSTS);

  return function checkHost(host, authority, isProbe) {
    // As nearly all callers write it: nothing has to be taken apart.
    if (host === base.host && authority === undefined) return;
    if (isProbe && host === undefined) return;
    if (!host || host.includes(',')) {
      fail('bad_request', { details: 'The request must have exactly one Host header.' });
    }
    const lowerCase = host.toLowerCase();
    if (authority !== undefined && authority.toLowerCase() !== lowerCase) {
      fail('bad_request', { details: 'The Host header differs from the request target.' });
    }
    if (isProbe) return;
    const [, name = '', port = defaultPort] = HOST.exec(lowerCase) ?? [];
    if (!namesWithAnyPort.has(name) && !exactHosts.has(`${name}:${port}`))
      fail('invalid_host', { facts: { found: truncateForLog(lowerCase), expected } });
  };
}
