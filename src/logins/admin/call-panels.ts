// §22.8: the panel of calls: the last ones first, with the names of users and clients as they are known now.

import type { ListedCall } from '../../http/endpoint/admin-calls.ts';
import type { AdminPanel } from '../../http/endpoint/admin-panel.ts';
import { type FoundPeople, lookThrough, matchesPerson } from '../../http/endpoint/admin-people.ts';
import {
  describeUser,
  readPageRequest,
  readSelectedUser,
  readShort,
  renderNext,
  renderTime,
} from '../../http/endpoint/admin-requests.ts';
import type { AdminTable } from '../../http/endpoint/admin-table.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/keys.ts';
import type { Owner } from '../../store/store.ts';
import { createClientDirectory } from '../clients/clients.ts';

export function createCallPanels(
  { store, clock }: Runtime,
  { calls, recentCallers, issuers }: FoundPeople,
): readonly AdminPanel[] {
  if (calls === undefined) return [];
  const clients = createClientDirectory(store);

  /** True for calls of users whose ID is the text, or whose name or e-mail contains it. */
  async function findIsOfPerson(text: string) {
    const { items } = await lookThrough(
      recentCallers.list,
      ({ user, person }) => matchesPerson(text, user.sub, person),
      { from: undefined, clock },
    );
    const owners = new Set(items.map(({ user }) => nameOwner(user)));
    return (call: ListedCall) =>
      call.user === text || owners.has(nameOwner(toOwner(call) ?? NO_OWNER));
  }

  async function findIsMeant(query: URLSearchParams) {
    const user = readSelectedUser(query, issuers);
    const text = query.get('person') ?? '';
    const isOfPerson = text === '' ? undefined : await findIsOfPerson(text);
    const [server, name, outcome] = ['server', 'name', 'outcome'].map((one) => query.get(one));
    return (call: ListedCall) =>
      (!user || (call.user === user.sub && (call.issuer ?? issuers.issuer) === user.issuer)) &&
      isOfPerson?.(call) !== false &&
      (!server || call.server === server) &&
      (!name || call.name === name) &&
      (!outcome || call.outcome === outcome);
  }

  return [
    {
      method: 'GET',
      path: '/calls',
      table: CALLS_TABLE,
      async show(query) {
        const request = readPageRequest(query);
        const page = await calls.list(request, await findIsMeant(query));
        const people = await lookUpEach(page.items.map(toOwner), nameOwner, recentCallers.find);
        const names = await lookUpEach(
          page.items.map(({ client }) => client),
          (id) => id,
          clients.findName,
        );
        const described = page.items.map((call) => {
          const { at, user: _, issuer: __, client, name, ...facts } = call;
          const owner = toOwner(call);
          return {
            ...facts,
            at: renderTime(at),
            ...(owner && { ...describeUser(owner, issuers), ...people.get(nameOwner(owner)) }),
            client: client && { id: client, name: readShort(names.get(client)) },
            item: name,
          };
        });
        return { calls: described, ...renderNext(page) };
      },
    },
  ];
}

const NO_OWNER: Owner = { sub: '' };

const toOwner = ({ user, issuer }: ListedCall): Owner | undefined =>
  user === undefined ? undefined : { sub: user, ...(issuer !== undefined && { issuer }) };

/** Looks up each key once. */
async function lookUpEach<Key, Found>(
  keys: readonly (Key | undefined)[],
  toName: (key: Key) => string,
  find: (key: Key) => Promise<Found>,
): Promise<ReadonlyMap<string, Found>> {
  const named = new Map(
    keys.flatMap((key) => (key === undefined ? [] : [[toName(key), key] as const])),
  );
  return new Map(
    await Promise.all([...named].map(async ([name, key]) => [name, await find(key)] as const)),
  );
}

const STATUSES = {
  success: { status: 'ok', title: 'OK' },
  failure: { status: 'error', title: 'Failed' },
  denied: { status: 'warning', title: 'Refused' },
  asked: { status: 'off', title: 'Asked its user' },
} as const;

const CALLS_TABLE: AdminTable = {
  group: 'activity',
  tab: 'Calls',
  title: 'Calls',
  about:
    'The last 10,000 calls of the last 24 hours to tools, prompts and resources, on all replicas. Arguments and results are not kept.',
  none: 'None in the last 24 hours.',
  rows: 'calls',
  isSearchable: true,
  follows: true,
  filters: [
    { parameter: 'server', title: 'Server' },
    { parameter: 'name', title: 'Tool' },
    {
      parameter: 'outcome',
      title: 'Outcome',
      options: Object.entries(STATUSES).map(([value, { title }]) => ({ value, title })),
    },
  ],
  columns: [
    { title: 'Tool', member: 'item', kind: 'code', none: 'unnamed' },
    { title: 'Outcome', member: 'outcome', kind: 'status', statuses: STATUSES },
    { title: 'Reason', member: 'reason', kind: 'code' },
    { title: 'User', member: 'user', kind: 'user', none: 'nobody' },
    { title: 'Client', member: 'client', kind: 'client' },
    { title: 'Server', member: 'server' },
    { title: 'Time', member: 'at', kind: 'time' },
    { title: 'Took', member: 'ms', kind: 'duration' },
    { title: 'Response', member: 'bytes', kind: 'size' },
  ],
};
