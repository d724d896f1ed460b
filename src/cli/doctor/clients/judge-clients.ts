// Which clients would log in and which not, from what was found out of the gateway.
import { isOnThisMachine } from '../../../platform/address.ts';
import { type Advice, type Finding, ok, warning } from '../finding.ts';
import { KNOWN_CLIENTS, type KnownClient } from './known-clients.ts';

export interface ClientFacts {
  /** Of the gateway. */
  readonly baseUrl: string;
  readonly isIssuerRight: boolean;
  /** Whether anybody can register; undefined where that was not found out. */
  readonly canRegister: boolean | undefined;
  readonly offersDocuments: boolean;
  readonly refusesSchemes: boolean;
  /** Those that the provider does not know, where it has to know them: proxy mode. */
  readonly unknownRedirectUris: ReadonlySet<string>;
}

interface Obstacle {
  readonly check: string;
  readonly isMet: (client: KnownClient, facts: ClientFacts) => boolean;
  /** Before the names. */
  readonly what: string;
  /** As they are made, whatever the gateway does. */
  readonly isByDesign?: true;
  readonly advice: Advice;
}

/** The first that a client meets is the one that counts. */
const OBSTACLES: readonly Obstacle[] = [
  {
    check: 'clients.internet',
    isMet: ({ isHosted }, { baseUrl }) =>
      isHosted === true && isOnThisMachine(new URL(baseUrl).hostname),
    what: 'Cannot reach this address, as they connect from the internet',
    advice: {
      setting: 'BASE_URL',
      remedy: 'give the gateway a public https address if you want them.',
    },
  },
  {
    check: 'clients.issuer',
    isMet: ({ comparesIssuer }, { isIssuerRight }) => comparesIssuer === true && !isIssuerRight,
    what: 'Would refuse to log in, as the metadata names another issuer',
    advice: { setting: 'OAUTH_MODE', remedy: 'set OAUTH_MODE=broker.' },
  },
  {
    check: 'clients.registration',
    isMet: ({ becomesKnown }, { canRegister, offersDocuments }) =>
      canRegister === false &&
      (becomesKnown === 'registers' || (becomesKnown === 'document' && !offersDocuments)),
    what: 'Could not log in without a client ID of yours, as they cannot register',
    advice: {
      setting: 'DCR_ACCESS_TOKEN',
      remedy: 'remove it if it is set, or register a client for each.',
    },
  },
  {
    check: 'clients.scheme',
    isMet: ({ redirectUri }, { refusesSchemes }) => refusesSchemes && !/^https?:/.test(redirectUri),
    what: 'Could not register, as they are called back by a scheme of their own',
    advice: {
      setting: 'OAUTH_REDIRECT_SCHEMES',
      remedy: 'list the schemes: OAUTH_REDIRECT_SCHEMES=cursor,vscode',
    },
  },
  {
    check: 'clients.redirect-uri',
    isMet: ({ redirectUri }, { unknownRedirectUris }) => unknownRedirectUris.has(redirectUri),
    what: 'Would be refused by the provider, which does not know their redirect URI',
    advice: {
      setting: 'OAUTH_MODE',
      remedy:
        'set OAUTH_MODE=broker, or register the redirect URI of each at the provider (docs/providers.md).',
    },
  },
  {
    check: 'clients.issuer-unknown',
    isMet: ({ comparesIssuer }, { isIssuerRight }) =>
      comparesIssuer === undefined && !isIssuerRight,
    what: 'May refuse to log in, as the metadata names another issuer; newer versions compare it',
    advice: { setting: 'OAUTH_MODE', remedy: 'set OAUTH_MODE=broker.' },
  },
  {
    check: 'clients.client-id',
    isMet: ({ becomesKnown }) => becomesKnown === 'client ID',
    what: 'Would log in with a client ID, as they never register',
    isByDesign: true,
    advice: { remedy: 'make one by POST /oauth/register, and enter it there.' },
  },
];

export function judgeClients(facts: ClientFacts): readonly Finding[] {
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
    ...OBSTACLES.flatMap((obstacle) => {
      const clients = found.get(obstacle);
      const { check, what, advice, isByDesign } = obstacle;
      const judge = isByDesign ? ok : warning;
      return clients === undefined ? [] : [judge(check, `${what}: ${listNames(clients)}.`, advice)];
    }),
  ];
}

const listNames = (clients: readonly KnownClient[]): string =>
  clients.map(({ name }) => name).join(', ');
