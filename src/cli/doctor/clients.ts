// Which clients would log in and which not, and why.

import { isOnThisMachine } from '../../platform/address.ts';
import {
  findClientsOwnRedirects,
  findUnknownRedirectUris,
  KNOWN_CLIENTS,
  type KnownClient,
} from './authorization.ts';
import {
  type Advice,
  type Check,
  type Finding,
  type Found,
  ok,
  type Report,
  runChecks,
  unknown,
  warning,
} from './finding.ts';
import { EDITOR_SCHEME } from './log-in.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';
import type { Walk } from './walk.ts';

/** Judges clients by what the walk found. */
export async function checkClients(walk: Walk): Promise<Found> {
  // Without authentication there is no login to fail.
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
  /** True where anybody can register; undefined where that was not found out. */
  readonly canRegister: boolean | undefined;
  readonly offersDocuments: boolean;
  readonly refusesSchemes: boolean;
  /** Those that the provider does not know, where it has to know them: proxy mode. */
  readonly unknownRedirectUris: ReadonlySet<string>;
}

interface Obstacle extends Advice {
  readonly check: string;
  readonly isMet: (client: KnownClient, facts: ClientFacts) => boolean;
  /** Before the names. */
  readonly what: string;
  /** As they are made, whatever the gateway does. */
  readonly isByDesign?: true;
}

/** The first that a client meets is the one that counts. */
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
    what: 'Would refuse to log in, as the metadata names another issuer',
    setting: 'OAUTH_MODE',
    remedy: 'set OAUTH_MODE=broker.',
  },
  {
    check: 'clients.registration',
    isMet: ({ becomesKnown }, { canRegister, offersDocuments }) =>
      canRegister === false &&
      (becomesKnown === 'registers' || (becomesKnown === 'document' && !offersDocuments)),
    what: 'Could not log in without a client ID of yours, as they cannot register',
    setting: 'DCR_ACCESS_TOKEN',
    remedy: 'remove it if it is set, or register a client for each.',
  },
  {
    check: 'clients.scheme',
    isMet: ({ redirectUri }, { refusesSchemes }) => refusesSchemes && !/^https?:/.test(redirectUri),
    what: 'Could not register, as they are called back by a scheme of their own',
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
    what: 'May refuse to log in, as the metadata names another issuer; newer versions compare it',
    setting: 'OAUTH_MODE',
    remedy: 'set OAUTH_MODE=broker.',
  },
  {
    check: 'clients.client-id',
    isMet: ({ becomesKnown }) => becomesKnown === 'client ID',
    what: 'Would log in with a client ID, as they never register',
    isByDesign: true,
    remedy: 'make one by POST /oauth/register, and enter it there.',
  },
];

function judgeClients(facts: ClientFacts): Found {
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
      return clients && judge(check, { what: `${what}: ${listNames(clients)}.`, ...advice });
    }),
  ];
}

const listNames = (clients: readonly KnownClient[]): string =>
  clients.map(({ name }) => name).join(', ');

/** As far as the settings decide it: for a gateway that does not run yet. */
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

/** Failures that shut out no client, or that the checks of clients look at themselves. */
const OTHER_FAILURES = /^(cors|registration|tools|token|server|gateway\.ready\.servers)(\.|$)/;

const NOT_TRIED = unknown(
  'clients',
  'which clients can log in. Not tried: none can before what fails above works.',
);

/** Not tried where something failed before that all of them need. */
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

/** True if no client could log in because of it. */
export const isInTheWay = ({ status, check }: Finding): boolean =>
  status === 'failure' && !OTHER_FAILURES.test(check);
