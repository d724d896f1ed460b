// Checks registration and login up to the provider's login page, and which known clients could log in.

import { isOnThisMachine } from '../../platform/address.ts';
import { HOW_TO_CHANGE_SECRET } from '../../store/seal/secrets.ts';
import {
  checkAuthorizationRequest,
  findClientsOwnRedirects,
  findUnknownRedirectUris,
  KNOWN_CLIENTS,
  type KnownClient,
} from './authorization.ts';
import {
  type Advice,
  type Check,
  defineCheck,
  type Finding,
  type Found,
  failure,
  LOGIN_NEEDS_STORE,
  ok,
  type Report,
  runChecks,
  unknown,
  warning,
} from './finding.ts';
import { EDITOR_SCHEME, type ProbeRegistration } from './log-in.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';
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
          `A login leads to ${new URL(outcome.url).host}${outcome.hasConsentPage ? ', through the consent page' : ''}.`,
        );
      case 'page-forgotten':
        return failure(
          'replicas.secret',
          'The consent page counts as expired a moment after it was shown.',
          {
            why: `The replica that got the answer cannot decrypt what the replica that showed the page has stored: their secrets differ. It says: ${outcome.said}`,
            setting: 'OAUTH_STATE_SECRET',
            remedy: `set the same list of secrets on all replicas, and the same REDIS_URL. ${HOW_TO_CHANGE_SECRET}`,
          },
        );
      case 'client-forgotten':
        return failure(
          'replicas.store',
          'The client that was registered a moment ago is unknown.',
          {
            why: `The replica that answered uses a different store from the one that registered it. It says: ${outcome.said}`,
            setting: 'REDIS_URL',
            remedy:
              'several replicas need the same REDIS_URL: without it, each replica has its own clients and sessions.',
          },
        );
      case 'limited':
        return unknown(
          LOGIN_CHECK,
          'whether a login works: the gateway has received too many logins (429).',
          outcome.advice,
        );
      case 'refused': {
        const { said } = outcome;
        const [, setting, remedy = "see the gateway's log."] =
          ADVICE.find(([sign]) => sign.test(said)) ?? [];
        return failure(LOGIN_CHECK, `The gateway refuses a login: ${said}`, {
          setting,
          remedy,
        });
      }
    }
  },
});

/** Advice for the gateway's own error messages. */
const ADVICE: readonly (readonly [sign: RegExp, setting: string, remedy: string])[] = [
  [
    /OAUTH_\w+_URL is not set/,
    'OAUTH_MODE',
    'set OAUTH_MODE=broker, which discovers the address, or set the named variable.',
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
    'have the proxy in front pass on Cookie and Set-Cookie headers.',
  ],
  [/resource/, 'BASE_URL', 'check that BASE_URL is the address that clients use.'],
];

/** Tests the authorization request that takes the browser to the provider. */
export const providerLoginCheck = defineCheck({
  section: 'Login',
  needsStore: LOGIN_NEEDS_STORE,
  async run({ logIn, probe }: Walk) {
    const outcome = await logIn();
    if (outcome?.kind !== 'at-provider') return [];
    const unreachable = 'The login leads to a provider that does not answer here.';
    return checkAuthorizationRequest(outcome.url, probe, unreachable, {
      setting: 'OIDC_ISSUER',
      remedy:
        "start the provider, or check that users' browsers can reach it; the gateway may reach it through another route.",
    });
  },
});

const REGISTRATION_CHECK = 'registration';

/** Registration of clients: RFC 7591, and client ID metadata documents. */
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
        warning(
          'registration.schemes',
          `Editors with their own callback scheme (cursor://) cannot register: ${registration.refusedSchemes}`,
          {
            setting: 'OAUTH_REDIRECT_SCHEMES',
            remedy:
              'list the schemes: OAUTH_REDIRECT_SCHEMES=cursor,vscode. Or set OAUTH_MODE=broker, which allows them.',
          },
        ),
      document.client_id_metadata_document_supported === true
        ? ok('client-documents', 'Clients may also use a client ID metadata document.')
        : ok(
            'client-documents',
            'Client ID metadata documents are not offered, so clients register instead.',
            {
              why: 'They are offered if CIMD_ALLOWED_HOSTS names hosts and the gateway can reach one of them.',
            },
          ),
    ];
  },
});

function tellRegistration(registration: ProbeRegistration | undefined) {
  switch (registration?.kind) {
    case undefined:
      return warning(REGISTRATION_CHECK, 'The metadata names no registration_endpoint.', {
        why: 'Clients that register by themselves need a client ID instead. A Postern gateway always names one.',
        remedy: 'check that this is the gateway, and that no proxy in front changes the document.',
      });
    case 'registered':
      return ok(
        REGISTRATION_CHECK,
        `Clients can register: this check did, as "postern doctor" (${registration.clientId}), which has no rights and expires by itself.`,
      );
    case 'token-needed':
      return warning(
        REGISTRATION_CHECK,
        'Registration needs a token (DCR_ACCESS_TOKEN), which few clients send.',
        {
          setting: 'DCR_ACCESS_TOKEN',
          remedy:
            'remove it to let clients register themselves, or give each client a client ID that you registered.',
        },
      );
    case 'limited':
      return unknown(
        REGISTRATION_CHECK,
        'whether clients can register: the gateway has received too many registrations (429).',
        registration.advice,
      );
    case 'refused':
      return failure(REGISTRATION_CHECK, `Clients cannot register: ${registration.said}.`, {
        remedy: "see the gateway's log.",
      });
  }
}

// Which clients could log in, which could not, and why.

/** Reports which of the known clients can log in, based on what the walk found. */
export async function checkClients(walk: Walk): Promise<Found> {
  // Without authentication there is no login.
  if ((await walk.callWithoutToken()).status !== 401) return [];
  const [document, resource, registration, login] = await Promise.all([
    walk.readServerDocument(),
    walk.readResourceMetadata(),
    walk.register(),
    walk.logIn(),
  ]);
  const servers = resource?.authorization_servers;
  const isRegistered = registration?.kind === 'registered';
  if (document === undefined) return [];
  return judgeClients({
    baseUrl: walk.baseUrl,
    isIssuerRight: Array.isArray(servers) && servers.includes(document.issuer),
    canRegister: registration?.kind === 'limited' ? undefined : isRegistered,
    offersDocuments: document.client_id_metadata_document_supported === true,
    refusesSchemes: isRegistered && registration.refusedSchemes !== undefined,
    unknownRedirectUris:
      login?.kind === 'at-provider'
        ? await findUnknownRedirectUris(login.url, walk.baseUrl, walk.probe)
        : new Set(),
  });
}

interface ClientFacts {
  readonly baseUrl: string;
  readonly isIssuerRight: boolean;
  /** True if any client can register; undefined if unknown. */
  readonly canRegister: boolean | undefined;
  readonly offersDocuments: boolean;
  readonly refusesSchemes: boolean;
  /** Redirect URIs that the provider does not know, but has to know in proxy mode. */
  readonly unknownRedirectUris: ReadonlySet<string>;
}

interface Obstacle extends Advice {
  readonly check: string;
  readonly isMet: (client: KnownClient, facts: ClientFacts) => boolean;
  /** Precedes the names. */
  readonly what: string;
  /** A limitation of the clients themselves, whatever the gateway does. */
  readonly isByDesign?: true;
}

/** Only the first obstacle of a client counts. */
const OBSTACLES: readonly Obstacle[] = [
  {
    check: 'clients.internet',
    isMet: ({ isHosted }, { baseUrl }) =>
      isHosted === true && isOnThisMachine(new URL(baseUrl).hostname),
    what: 'Cannot reach this address, as they connect from the internet',
    setting: 'BASE_URL',
    remedy: 'give the gateway a public https address if you want them.',
  },
  {
    check: 'clients.issuer',
    isMet: ({ comparesIssuer }, { isIssuerRight }) => comparesIssuer === true && !isIssuerRight,
    what: 'Would refuse to log in, as the metadata names a different issuer',
    setting: 'OAUTH_MODE',
    remedy: 'set OAUTH_MODE=broker.',
  },
  {
    check: 'clients.registration',
    isMet: ({ becomesKnown }, { canRegister, offersDocuments }) =>
      canRegister === false &&
      (becomesKnown === 'registers' || (becomesKnown === 'document' && !offersDocuments)),
    what: 'Could not log in without a client ID from you, as they cannot register',
    setting: 'DCR_ACCESS_TOKEN',
    remedy: 'remove it if it is set, or register a client for each.',
  },
  {
    check: 'clients.scheme',
    isMet: ({ redirectUri }, { refusesSchemes }) => refusesSchemes && !/^https?:/.test(redirectUri),
    what: 'Could not register, as they have their own callback scheme',
    setting: 'OAUTH_REDIRECT_SCHEMES',
    remedy: 'list the schemes: OAUTH_REDIRECT_SCHEMES=cursor,vscode',
  },
  {
    check: 'clients.redirect-uri',
    isMet: ({ redirectUri }, { unknownRedirectUris }) => unknownRedirectUris.has(redirectUri),
    what: 'Would be refused by the provider, which does not know their redirect URI',
    setting: 'OAUTH_MODE',
    remedy:
      'set OAUTH_MODE=broker, or register the redirect URI of each at the provider (docs/providers.md).',
  },
  {
    check: 'clients.issuer-unknown',
    isMet: ({ comparesIssuer }, { isIssuerRight }) =>
      comparesIssuer === undefined && !isIssuerRight,
    what: 'May refuse to log in, as the metadata names a different issuer; newer versions compare it',
    setting: 'OAUTH_MODE',
    remedy: 'set OAUTH_MODE=broker.',
  },
  {
    check: 'clients.client-id',
    isMet: ({ becomesKnown }) => becomesKnown === 'client ID',
    what: 'Would log in with a client ID, as they never register',
    isByDesign: true,
    remedy: 'create one with POST /oauth/register, and enter it there.',
  },
];

function judgeClients(facts: ClientFacts) {
  const found = new Map<Obstacle | undefined, KnownClient[]>();
  for (const client of KNOWN_CLIENTS) {
    const obstacle = OBSTACLES.find(({ isMet }) => isMet(client, facts));
    found.set(obstacle, [...(found.get(obstacle) ?? []), client]);
  }
  const fine = found.get(undefined) ?? [];
  return [
    fine.length > 0
      ? ok('clients', `Would log in: ${listNames(fine)}.`)
      : warning('clients', 'None of the known clients would log in, for the reasons below.'),
    ...OBSTACLES.map((obstacle) => {
      const clients = found.get(obstacle);
      const { check, what, isByDesign, isMet: _isMet, ...advice } = obstacle;
      const judge = isByDesign ? ok : warning;
      return clients && judge(check, `${what}: ${listNames(clients)}.`, advice);
    }),
  ];
}

const listNames = (clients: readonly KnownClient[]) => clients.map(({ name }) => name).join(', ');

/** For a gateway that does not run yet: the part that the settings determine. */
export async function checkConfiguredClients(settings: SettingsAtHand): Promise<Found> {
  const { auth, oauth, server } = settings.config;
  if (!auth.required) return [];
  return judgeClients({
    baseUrl: server.baseUrl,
    isIssuerRight: oauth.mode === 'broker' || oauth.metadataIssuer === 'self',
    canRegister: oauth.registration.accessToken === undefined,
    offersDocuments: oauth.clientIdMetadata.allowedHosts.length > 0,
    refusesSchemes: !oauth.redirectUris.schemes.includes(EDITOR_SCHEME),
    unknownRedirectUris: await findClientsOwnRedirects(settings),
  });
}

/** Failures that exclude no client, or that the client checks examine themselves. */
const OTHER_FAILURES = /^(cors|registration|tools|token|server|gateway\.ready\.servers)(\.|$)/;

const NOT_TRIED = unknown(
  'clients',
  'which clients can log in. Not tried: none can until the failures above are fixed.',
);

/** Skipped after a failure that affects all clients. */
export const runClientCheck = <Subject>(
  before: readonly Finding[],
  check: Check<Subject>['run'],
  subject: Subject,
  report: Report,
): Promise<readonly Finding[]> =>
  runChecks(
    [{ section: 'Clients', run: before.some(isInTheWay) ? async () => NOT_TRIED : check }],
    subject,
    report,
  );

/** True if the failure prevents the login of every client. */
export const isInTheWay = ({ status, check }: Finding): boolean =>
  status === 'failure' && !OTHER_FAILURES.test(check);
