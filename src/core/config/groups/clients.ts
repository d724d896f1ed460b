// Which clients are let in, and where they may be called back.
import { ONE_YEAR_SECONDS, THIRTY_DAYS_SECONDS } from '../durations.ts';
import { flag, integer, listOrNone, type Rule } from '../rules.ts';
import { derived, fixed, none, type Read, setting } from '../setting.ts';
import { isBroker } from './oauth-mode.ts';

export interface ClientsConfig {
  readonly registration: RegistrationConfig;
  readonly redirectUris: {
    /** Private-use schemes (RFC 8252 §7.1), without the colon. */
    readonly schemes: readonly string[];
    readonly anyLoopbackPort: boolean;
  };
  readonly clientIdMetadata: {
    /** Whose documents are believed; `*` for any host. */
    readonly allowedHosts: readonly string[];
  };
}

/** RFC 7591. */
export interface RegistrationConfig {
  readonly ttlSeconds: number;
  /** Whether each token that a client gets starts its time anew. */
  readonly isRenewed: boolean;
  /** Needed to register, where it is set. */
  readonly accessToken: string | undefined;
}

const documentHost: Rule<string> = {
  parse: (text) => (text === '*' || /^([a-z0-9-]+\.)+[a-z0-9-]+$/.test(text) ? text : undefined),
  allowed: 'a host name',
};

/** Browsers run these, or read files by them: never a way back to a client. */
const DANGEROUS = new Set([
  'about',
  'blob',
  'data',
  'file',
  'filesystem',
  'ftp',
  'http',
  'https',
  'javascript',
  'jar',
  'mailto',
  'vbscript',
  'view-source',
  'ws',
  'wss',
]);

const scheme: Rule<string> = {
  parse: (text) => (/^[a-z][a-z0-9+.-]*$/.test(text) && !DANGEROUS.has(text) ? text : undefined),
  allowed: 'a scheme',
};

const accessToken: Rule<string> = {
  parse: (text) => (/^[\x21-\x7e]{16,}$/.test(text) ? text : undefined),
  allowed: 'at least 16 printable ASCII characters',
};

const DOCUMENT_HOSTS = ['claude.ai', 'vscode.dev', 'chatgpt.com', 'zed.dev', 'cursor.com'];
const SCHEMES = ['cursor', 'vscode', 'vscode-insiders', 'windsurf', 'claude'];

/** The value with broker mode, nothing with the other. */
const brokerList = (items: readonly string[]) =>
  derived(`${items.join(', ')} with OAUTH_MODE=broker, else none`, (read): readonly string[] =>
    isBroker(read) ? items : [],
  );

const trueForBroker = derived('true with OAUTH_MODE=broker, else false', isBroker);

export const clientSettings = {
  allowedHosts: setting({
    variable: 'CIMD_ALLOWED_HOSTS',
    rule: listOrNone(documentHost, 'a comma list of host names, * for any, or none'),
    default: brokerList(DOCUMENT_HOSTS),
    help: 'Hosts whose client ID metadata documents (CIMD) are believed: a client_id that is an https URL there needs no registration.',
  }),
  anyLoopbackPort: setting({
    variable: 'OAUTH_LOOPBACK_ANY_PORT',
    rule: flag,
    default: trueForBroker,
    help: 'A client registered for a redirect URI on localhost, 127.0.0.1 or [::1] may come back to another port (RFC 8252 §7.3).',
  }),
  redirectSchemes: setting({
    variable: 'OAUTH_REDIRECT_SCHEMES',
    rule: listOrNone(scheme, 'a comma list of private-use schemes such as cursor, or none'),
    default: brokerList(SCHEMES),
    help: 'Schemes beside https that a redirect URI may have (RFC 8252 §7.1).',
  }),
  registrationTtlSeconds: setting({
    variable: 'DCR_CLIENT_TTL',
    rule: integer(60, ONE_YEAR_SECONDS * 10),
    default: fixed(THIRTY_DAYS_SECONDS),
    help: 'Seconds until a client of dynamic client registration (DCR, RFC 7591) must register again (30 days). With OAUTH_MODE=broker they count from its first token, and a client that never got one is forgotten after a day.',
  }),
  isRegistrationRenewed: setting({
    variable: 'DCR_RENEW',
    rule: flag,
    default: trueForBroker,
    help: 'Every token that a registered client gets starts its DCR_CLIENT_TTL anew.',
  }),
  registrationAccessToken: setting({
    variable: 'DCR_ACCESS_TOKEN',
    rule: accessToken,
    default: none,
    help: 'Registration then needs this bearer token (RFC 7591 §3). Few clients can send one.',
    secret: true,
  }),
};

export const readClientsConfig = (read: Read): ClientsConfig => ({
  registration: {
    ttlSeconds: read(clientSettings.registrationTtlSeconds),
    isRenewed: read(clientSettings.isRegistrationRenewed),
    accessToken: read(clientSettings.registrationAccessToken),
  },
  redirectUris: {
    schemes: read(clientSettings.redirectSchemes),
    anyLoopbackPort: read(clientSettings.anyLoopbackPort),
  },
  clientIdMetadata: { allowedHosts: read(clientSettings.allowedHosts) },
});
