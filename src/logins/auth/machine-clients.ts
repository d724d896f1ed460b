// §13.6: clients that log in as themselves, as the current configuration file names them.

import { hashSha256 } from '../../platform/ids.ts';
import { quote } from '../../platform/text.ts';
import type { UserIdentity } from '../grants/grant.ts';
import type { VerificationKey } from './jwk.ts';

export interface MachineClient {
  readonly id: string;
  readonly credentials: MachineCredentials;
  readonly scopes: readonly string[];
  readonly groups: readonly string[];
  /** URLs or paths of this gateway; undefined for all of it. */
  readonly resources: readonly string[] | undefined;
  /** Maximum number of calls per window; undefined if it is counted like any user. */
  readonly rateLimit: number | undefined;
  /** Changes with anything that its tokens were issued for, and with its credentials. */
  readonly mark: string;
  /** Its position in the file, for messages: `postern.yaml:12: clients[0]`. */
  readonly place: string;
}

/** The client's proof of identity. */
export type MachineCredentials =
  /** SHA-256 of the secret, base64url. */
  | { readonly kind: 'secret'; readonly hash: string }
  | { readonly kind: 'keys'; readonly keys: readonly VerificationKey[] }
  | { readonly kind: 'keysUrl'; readonly url: string };

export interface MachineClientsConfig {
  readonly clients?: readonly MachineClient[];
}

/** A client as written in the file, with its mark. */
export const markClient = (client: Omit<MachineClient, 'mark'>): MachineClient => {
  const { id, credentials, scopes, resources } = client;
  const proof =
    credentials.kind === 'keys'
      ? credentials.keys.map(({ identity }) => identity).sort()
      : credentials;
  const mark = hashSha256(JSON.stringify([id, proof, scopes, resources ?? null]));
  return { ...client, mark };
};

/** True if the file allows its tokens to be used for the operators' API: a token for all servers would also work there. */
export const mayOperate = ({ resources }: MachineClient, baseUrl: string): boolean =>
  resources === undefined ||
  resources.some((one) => ['/admin', `${baseUrl}/admin`].includes(one.replace(/\/$/, '')));

/** The prefix of their `sub`. No `sub` from a provider may have it. */
export const MACHINE_SUBJECT_PREFIX = 'client:';

/** Why a provider's token that names one is refused. */
export const describeMachineSubject = (token: string, sub: string): string =>
  `The sub claim of the ${token} is ${quote(sub)}; no user may begin with "client:", which is what machine clients of this gateway are called.`;

/** They are users of the gateway itself, so that none can be mistaken for a user of the provider. */
export const toMachineUser = (clientId: string, baseUrl: string): UserIdentity => ({
  issuer: baseUrl,
  sub: MACHINE_SUBJECT_PREFIX + clientId,
});

export const findIssuerOf = (
  sub: string,
  { baseUrl, issuer }: { readonly baseUrl: string; readonly issuer: string },
): string => (sub.startsWith(MACHINE_SUBJECT_PREFIX) ? baseUrl : issuer);

export type MachineClients = ReturnType<typeof createMachineClients>;

/** The clients of the current file. A client is a different object once the file has been reloaded. */
export function createMachineClients(first: readonly MachineClient[] = []) {
  let byId = index(first);
  const listeners: ((ids: readonly string[]) => void)[] = [];

  return {
    find: (id: string) => byId.get(id),
    list: (): readonly MachineClient[] => [...byId.values()],
    replace(clients: readonly MachineClient[]) {
      const before = [...byId.values()];
      byId = index(clients);
      const changed = before.filter(({ id, mark }) => byId.get(id)?.mark !== mark);
      for (const listener of listeners) listener(changed.map(({ id }) => id));
    },
    /** Called with clients whose tokens are no longer valid, because the clients were removed or changed. */
    onChange: (listener: (ids: readonly string[]) => void): void => void listeners.push(listener),
  };
}

const index = (clients: readonly MachineClient[]): ReadonlyMap<string, MachineClient> =>
  new Map(clients.map((client) => [client.id, client]));
