// Settings of OAuth clients: registration, allowed redirect URIs, and the pages of a login.
import {
  flag,
  integer,
  listOrNone,
  matching,
  NONE,
  ONE_YEAR_SECONDS,
  oneOf,
  THIRTY_DAYS_SECONDS,
  textWith,
} from '../rules.ts';
import { defineSetting, type Read, readAll } from '../setting.ts';
import { chooseByMode } from './provider.ts';

const documentHosts = listOrNone(
  matching(/^(\*|([a-z0-9-]+\.)+[a-z0-9-]+)$/, 'a host name'),
  'a comma-separated list of host names, * for any, or none',
);

/** Schemes that browsers execute or use to read files: never allowed in redirect URIs. */
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

const scheme = textWith(
  (text) => /^[a-z][a-z0-9+.-]*$/.test(text) && !DANGEROUS.has(text),
  'a scheme',
);

const schemes = listOrNone(
  scheme,
  'a comma-separated list of private-use schemes such as cursor, or none',
);

const bearerToken = matching(/^[\x21-\x7e]{16,}$/, 'at least 16 printable ASCII characters');

const DOCUMENT_HOSTS = ['claude.ai', 'vscode.dev', 'chatgpt.com', 'zed.dev', 'cursor.com'];
const SCHEMES = ['cursor', 'vscode', 'vscode-insiders', 'windsurf', 'claude'];

const writeList = (items: readonly string[]) => items.join(',') || NONE;

const documentSettings = {
  allowedHosts: defineSetting('CIMD_ALLOWED_HOSTS', documentHosts, {
    computed: chooseByMode({ proxy: [], broker: DOCUMENT_HOSTS }, writeList),
    summary: 'Hosts of clients that need no registration.',
    details:
      'A client whose `client_id` is an https URL on one of them is identified by its client ID metadata document there (CIMD). `*` is not allowed with HTTPS_PROXY or HTTP_PROXY.',
  }),
};

/** Settings of dynamic client registration (RFC 7591). */
const registrationSettings = {
  ttlSeconds: defineSetting('DCR_CLIENT_TTL', integer(60, ONE_YEAR_SECONDS * 10), {
    default: THIRTY_DAYS_SECONDS,
    summary: 'Seconds until a registered client must register again.',
    details:
      'Dynamic client registration (DCR), RFC 7591. In broker mode they start with its first token, and a client that never got one is deleted after a day.',
  }),
  isRenewed: defineSetting('DCR_RENEW', flag, {
    computed: chooseByMode({ proxy: false, broker: true }),
    summary: 'Whether every token restarts the DCR_CLIENT_TTL of its client.',
  }),
  accessToken: defineSetting('DCR_ACCESS_TOKEN', bearerToken, {
    summary: 'A bearer token that registration then requires (RFC 7591 §3).',
    details: 'Few clients can send one.',
    isSecret: true,
  }),
};

const redirectSettings = {
  schemes: defineSetting('OAUTH_REDIRECT_SCHEMES', schemes, {
    computed: chooseByMode({ proxy: [], broker: SCHEMES }, writeList),
    summary: 'Schemes for redirect URIs in addition to https (RFC 8252 §7.1).',
  }),
  allowsAnyLoopbackPort: defineSetting('OAUTH_LOOPBACK_ANY_PORT', flag, {
    computed: chooseByMode({ proxy: false, broker: true }),
    summary: 'Let clients on this computer use a different port than they registered.',
    details:
      'For redirect URIs on `localhost`, `127.0.0.1` or, in broker mode, `[::1]` (RFC 8252 §7.3): desktop apps use a different port each time.',
  }),
};

export const clientSettings = { ...documentSettings, ...registrationSettings, ...redirectSettings };

export const readClientsConfig = (read: Read) => ({
  registration: readAll(registrationSettings, read),
  redirectUris: readAll(redirectSettings, read),
  clientIdMetadata: readAll(documentSettings, read),
});

// Settings of the consent page and the other pages of a login.

export const consentSettings = {
  kind: defineSetting('OAUTH_CONSENT', oneOf('page', 'off'), {
    computed: chooseByMode({ proxy: 'off', broker: 'page' }),
    summary: 'Whether users approve a client before it can log in.',
    details:
      '`page` asks the user. `off` leaves it to the provider, which knows only one client and cannot tell your clients apart.',
  }),
  ttlSeconds: defineSetting('OAUTH_CONSENT_TTL_SECONDS', integer(0, ONE_YEAR_SECONDS), {
    default: THIRTY_DAYS_SECONDS,
    summary: 'Seconds for which an approval is remembered; 0 asks every time.',
    details:
      'For each browser, client and redirect URI. In broker mode also for the logged-in user, until the user or an operator logs the client out.',
  }),
  popups: defineSetting('OAUTH_POPUPS', flag, {
    default: false,
    summary: 'Let web clients log in through a popup.',
    details: 'The login pages then have `Cross-Origin-Opener-Policy: unsafe-none`.',
  }),
};
