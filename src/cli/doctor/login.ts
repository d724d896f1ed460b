// Clients become known, and log in: from their authorization request to the provider's login page.

import { HOW_TO_CHANGE_SECRET } from '../../store/seal/secrets.ts';
import { checkAuthorizationRequest } from './authorization.ts';
import {
  defineCheck,
  type Finding,
  failure,
  LOGIN_NEEDS_STORE,
  ok,
  unknown,
  warning,
} from './finding.ts';
import type { ProbeRegistration } from './log-in.ts';
import type { Walk } from './walk.ts';

const LOGIN_CHECK = 'login';

export const loginCheck = defineCheck({
  section: 'Login',
  needsStore: LOGIN_NEEDS_STORE,
  async run(walk: Walk) {
    const outcome = await walk.logIn();
    switch (outcome?.kind) {
      case undefined:
        return undefined;
      case 'at-provider':
        return ok(
          LOGIN_CHECK,
          `A login leads to ${new URL(outcome.url).host}${outcome.hasConsentPage ? ', by the consent page' : ''}.`,
        );
      case 'page-forgotten':
        return failure('replicas.secret', {
          what: 'The consent page counts as expired a moment after it was shown.',
          why: `The replica that got the answer cannot open what the one that showed the page has stored: their secrets differ. It says: ${outcome.said}`,
          setting: 'OAUTH_STATE_SECRET',
          remedy: `set the same list of secrets on all replicas, and the same REDIS_URL. ${HOW_TO_CHANGE_SECRET}`,
        });
      case 'client-forgotten':
        return failure('replicas.store', {
          what: 'The client that was registered a moment ago is unknown.',
          why: `The replica that was asked has another store than the one that registered it. It says: ${outcome.said}`,
          setting: 'REDIS_URL',
          remedy:
            'several replicas need the same REDIS_URL: without it each keeps its clients and sessions for itself.',
        });
      case 'limited':
        return unknown(LOGIN_CHECK, {
          what: 'whether a login works: the gateway has received too many (429).',
          ...outcome.advice,
        });
      case 'refused': {
        const { said } = outcome;
        const [, setting, remedy = "the gateway's log says why."] =
          ADVICE.find(([sign]) => sign.test(said)) ?? [];
        return failure(LOGIN_CHECK, {
          what: `The gateway refuses a login: ${said}`,
          setting,
          remedy,
        });
      }
    }
  },
});

/** Words of the gateway's own answers. */
const ADVICE: readonly (readonly [sign: RegExp, setting: string, remedy: string])[] = [
  [
    /OAUTH_\w+_URL is not set/,
    'OAUTH_MODE',
    'set OAUTH_MODE=broker, which finds the address by itself, or set the variable that is named.',
  ],
  [
    /OAUTH_CLIENT_ID is not set/,
    'OAUTH_CLIENT_ID',
    'register a client for the gateway at the provider, and set its ID.',
  ],
  [
    /discovery document/,
    'OIDC_ISSUER',
    'check that the provider runs and that the gateway can reach it; its log has the reason.',
  ],
  [
    /another browser, or cookies/,
    'BASE_URL',
    'have the proxy in front pass Cookie and Set-Cookie headers on.',
  ],
  [/resource/, 'BASE_URL', 'check that BASE_URL is the address that clients are given.'],
];

/** Asks the provider about the request with which the browser comes to it. */
export const providerLoginCheck = defineCheck({
  section: 'Login',
  needsStore: LOGIN_NEEDS_STORE,
  async run({ logIn, probe }: Walk) {
    const outcome = await logIn();
    if (outcome?.kind !== 'at-provider') return [];
    return checkAuthorizationRequest(outcome.url, probe, {
      what: 'The login leads to a provider that does not answer here.',
      setting: 'OIDC_ISSUER',
      remedy:
        "start the provider, or check that users' browsers can reach it; the gateway may reach it by another way.",
    });
  },
});

const REGISTRATION_CHECK = 'registration';

/** RFC 7591, and client ID metadata documents: how clients become known. */
export const registrationCheck = defineCheck({
  section: 'Registration',
  needsStore: 'whether clients can register',
  async run(walk: Walk) {
    const document = await walk.readServerDocument();
    if (document === undefined) return [];
    const registration = await walk.register();
    return [
      tellRegistration(registration),
      registration?.kind === 'registered' &&
        registration.refusedSchemes !== undefined &&
        warning('registration.schemes', {
          what: `Editors that are called back by a scheme of their own (cursor://) cannot register: ${registration.refusedSchemes}`,
          setting: 'OAUTH_REDIRECT_SCHEMES',
          remedy:
            'list the schemes: OAUTH_REDIRECT_SCHEMES=cursor,vscode. Or set OAUTH_MODE=broker, which allows them.',
        }),
      document.client_id_metadata_document_supported === true
        ? ok('client-documents', 'Clients may also come with a client ID metadata document.')
        : ok('client-documents', {
            what: 'Client ID metadata documents are not offered, so clients register instead.',
            why: 'They are offered where CIMD_ALLOWED_HOSTS names hosts and the gateway reaches one of them.',
          }),
    ];
  },
});

function tellRegistration(registration: ProbeRegistration | undefined): Finding {
  switch (registration?.kind) {
    case undefined:
      return warning(REGISTRATION_CHECK, {
        what: 'The metadata names no registration_endpoint.',
        why: 'Clients that register by themselves need a client ID instead. A Postern gateway always names one.',
        remedy: 'check that this is the gateway, and that no proxy in front changes the document.',
      });
    case 'registered':
      return ok(
        REGISTRATION_CHECK,
        `Clients can register: this check did, as "postern doctor" (${registration.clientId}), which has no rights and is forgotten by itself.`,
      );
    case 'token-needed':
      return warning(REGISTRATION_CHECK, {
        what: 'Registration needs a token (DCR_ACCESS_TOKEN), which few clients send.',
        setting: 'DCR_ACCESS_TOKEN',
        remedy:
          'remove it to let clients register themselves, or give each client a client ID that you registered.',
      });
    case 'limited':
      return unknown(REGISTRATION_CHECK, {
        what: 'whether clients can register: the gateway has received too many registrations (429).',
        ...registration.advice,
      });
    case 'refused':
      return failure(REGISTRATION_CHECK, {
        what: `Clients cannot register: ${registration.said}.`,
        remedy: "the gateway's log says why.",
      });
  }
}
