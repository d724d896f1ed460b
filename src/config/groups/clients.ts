// Which clients are let in, and where they may be called back.
import {
  flag,
  integer,
  listOrNone,
  NONE,
  ONE_YEAR_SECONDS,
  type Rule,
  THIRTY_DAYS_SECONDS,
} from '../rules.ts';
import { defineSetting, NO_DEFAULT, type Read } from '../setting.ts';
import { chooseByMode } from './oauth-mode.ts';

export interface ClientsConfig {
  readonly registration: RegistrationConfig;
  readonly redirectUris: {
    /** Private-use schemes (RFC 8252 §7.1), without the colon. */
    readonly schemes: readonly string[];
    readonly allowsAnyLoopbackPort: boolean;
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

const bearerToken: Rule<string> = {
  parse: (text) => (/^[\x21-\x7e]{16,}$/.test(text) ? text : undefined),
  allowed: 'at least 16 printable ASCII characters',
};

const DOCUMENT_HOSTS = ['claude.ai', 'vscode.dev', 'chatgpt.com', 'zed.dev', 'cursor.com'];
const SCHEMES = ['cursor', 'vscode', 'vscode-insiders', 'windsurf', 'claude'];

const writeList = (items: readonly string[]): string => items.join(',') || NONE;

export const clientSettings = {
  allowedHosts: defineSetting<readonly string[]>({
    variable: 'CIMD_ALLOWED_HOSTS',
    rule: listOrNone(documentHost, 'a comma-separated list of host names, * for any, or none'),
    default: chooseByMode({ proxy: [], broker: DOCUMENT_HOSTS }, writeList),
    summary: 'Hosts of clients that need no registration.',
    details:
      'A client whose `client_id` is an https URL on one of them is known by its client ID metadata document there (CIMD). `*` is not allowed with HTTPS_PROXY or HTTP_PROXY.',
  }),
  registrationTtlSeconds: defineSetting({
    variable: 'DCR_CLIENT_TTL',
    rule: integer(60, ONE_YEAR_SECONDS * 10),
    default: { value: THIRTY_DAYS_SECONDS },
    summary: 'Seconds until a registered client must register again.',
    details:
      'Dynamic client registration (DCR), RFC 7591. In broker mode they start with its first token, and a client that never got one is forgotten after a day.',
  }),
  isRegistrationRenewed: defineSetting({
    variable: 'DCR_RENEW',
    rule: flag,
    default: chooseByMode({ proxy: false, broker: true }),
    summary: 'Whether every token starts the DCR_CLIENT_TTL of its client again.',
  }),
  registrationAccessToken: defineSetting({
    variable: 'DCR_ACCESS_TOKEN',
    rule: bearerToken,
    default: NO_DEFAULT,
    summary: 'A bearer token that registration then needs (RFC 7591 §3).',
    details: 'Few clients can send one.',
    isSecret: true,
  }),
  redirectSchemes: defineSetting<readonly string[]>({
    variable: 'OAUTH_REDIRECT_SCHEMES',
    rule: listOrNone(
      scheme,
      'a comma-separated list of private-use schemes such as cursor, or none',
    ),
    default: chooseByMode({ proxy: [], broker: SCHEMES }, writeList),
    summary: 'Schemes of redirect URIs beside https (RFC 8252 §7.1).',
  }),
  allowsAnyLoopbackPort: defineSetting({
    variable: 'OAUTH_LOOPBACK_ANY_PORT',
    rule: flag,
    default: chooseByMode({ proxy: false, broker: true }),
    summary: 'Lets clients on this computer come back to another port than they registered.',
    details:
      'For redirect URIs on `localhost`, `127.0.0.1` or, in broker mode, `[::1]` (RFC 8252 §7.3): desktop apps take another port each time.',
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
    allowsAnyLoopbackPort: read(clientSettings.allowsAnyLoopbackPort),
  },
  clientIdMetadata: { allowedHosts: read(clientSettings.allowedHosts) },
});
