// Which requests are let through, and how large they may be.
import { host, integer, list, origin, trustProxy } from '../rules.ts';
import { fixed, type Read, setting } from '../setting.ts';
import type { TrustProxy } from '../trust-proxy.ts';

export interface HttpConfig {
  /** Origins of browser clients, beside that of the base URL. */
  readonly allowedOrigins: readonly string[];
  /** Values of the Host header, beside that of the base URL. */
  readonly allowedHosts: readonly string[];
  readonly trustProxy: TrustProxy;
  readonly maxBodyBytes: number;
  /** JSON values in one request body. */
  readonly maxBodyValues: number;
  /** Bytes of a bearer token. */
  readonly maxTokenBytes: number;
  /** Open connections of the process; 0 for any number. */
  readonly maxConnections: number;
}

export const httpSettings = {
  allowedOrigins: setting({
    variable: 'ALLOWED_ORIGINS',
    rule: list(origin, 'a comma list of origins such as https://app.example.com'),
    default: fixed([]),
    help: "Origins of browser clients. BASE_URL's own is always allowed; http://localhost:* and http://127.0.0.1:* are unless NODE_ENV=production.",
  }),
  allowedHosts: setting({
    variable: 'ALLOWED_HOSTS',
    rule: list(
      host,
      'a comma list of hosts such as gateway.internal:8080; without a port any port is meant',
    ),
    default: fixed([]),
    help: "Further values of the Host header beside BASE_URL's; without a port, any port. localhost, 127.0.0.1 and [::1] are allowed unless NODE_ENV=production.",
  }),
  trustProxy: setting<TrustProxy>({
    variable: 'TRUST_PROXY',
    rule: trustProxy,
    default: fixed({ kind: 'all' }, 'all'),
    help: 'Whom to believe about the address of the caller. all: the first entry of X-Forwarded-For, else X-Real-IP. none: the socket. A number n: the n-th address from the right of X-Forwarded-For. Addresses and CIDR ranges: those proxies are skipped from the right.',
  }),
  maxBodyBytes: setting({
    variable: 'MAX_BODY_BYTES',
    rule: integer(1024, 104_857_600),
    default: fixed(1_048_576),
    help: 'Largest request body, in bytes; more is answered with 413.',
  }),
  maxBodyValues: setting({
    variable: 'MAX_BODY_VALUES',
    rule: integer(100, 10_000_000),
    default: fixed(20_000),
    help: 'Most JSON values (objects, arrays, strings, numbers, true, false, null) in a request body; more is answered with 413.',
  }),
  maxTokenBytes: setting({
    variable: 'MAX_TOKEN_BYTES',
    rule: integer(1024, 131_072),
    default: fixed(16_384),
    help: 'Longest bearer token that is accepted, in bytes. Users in many groups have long tokens; a proxy in front must let such headers through too.',
  }),
  maxConnections: setting({
    variable: 'MAX_CONNECTIONS',
    rule: integer(0, 10_000_000),
    default: fixed(10_000),
    help: 'Most open connections of this process. At the limit the connection that has been idle longest is closed. 0 means no limit.',
  }),
};

export const readHttpConfig = (read: Read): HttpConfig => ({
  allowedOrigins: read(httpSettings.allowedOrigins),
  allowedHosts: read(httpSettings.allowedHosts),
  trustProxy: read(httpSettings.trustProxy),
  maxBodyBytes: read(httpSettings.maxBodyBytes),
  maxBodyValues: read(httpSettings.maxBodyValues),
  maxTokenBytes: read(httpSettings.maxTokenBytes),
  maxConnections: read(httpSettings.maxConnections),
});
