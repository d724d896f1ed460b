// §24: links that lead one user to a connection, and calls that wait for the outcome.

import type {
  ConnectionRequest,
  ConnectionRequests,
  RequestOutcome,
} from '../mcp/upstream/connections.ts';
import { hashSha256 } from '../platform/ids.ts';
import { waitForOutcome } from '../platform/single-flight.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { buildConnectionLinkKey } from '../store/keys.ts';
import { createRecords, createSecretRecords, textFormat } from '../store/records.ts';
import type { ConnectionPlace } from './connection-record.ts';
import type { KeptConnections } from './kept-connections.ts';

export interface LinkRequests extends ConnectionRequests {
  /** The connection is established: the link stops working. Never rejects. */
  complete(id: string): Promise<void>;
}

interface LinkRecord extends ConnectionRequest {
  /** The former connection: the link leads to another one. */
  readonly before: string | undefined;
  readonly outcome?: 'connected' | 'declined' | undefined;
}

const LINK_SECONDS = 600;
/** A model that calls in a loop gets the same link again. */
const SAME_LINK_SECONDS = 60;
const WAIT_MS = 300_000;

export function createLinkRequests(
  { store, clock, config }: Runtime,
  { seal, records, changes, findPlace }: KeptConnections,
): LinkRequests {
  const links = createSecretRecords<LinkRecord>(
    { store, seal },
    'connection-request',
    LINK_SECONDS,
  );
  const recent = createRecords(store, textFormat, seal);

  /** ID of the active connection; undefined if there is none, or it needs a login. */
  async function findActiveId(place: ConnectionPlace) {
    const stored = await records.read(place);
    return stored?.record.state === 'active' ? stored.record.id : undefined;
  }

  const buildLink = (id: string, server: string) => ({
    id,
    url: `${config.server.baseUrl}/connections/${encodeURIComponent(server)}?request=${id}`,
  });

  const isOpen = (link: LinkRecord | undefined): link is LinkRecord =>
    link !== undefined && link.outcome === undefined;

  const close = (id: string, outcome: 'connected' | 'declined') =>
    links.update(id, (link) =>
      isOpen(link)
        ? { value: { ...link, outcome }, ttlSeconds: LINK_SECONDS, result: link }
        : { result: undefined },
    );

  /** Undefined while there is no outcome. @throws StoreUnavailable */
  async function look(id: string, place: ConnectionPlace): Promise<RequestOutcome | undefined> {
    const link = await links.get(id);
    if (link === undefined) return 'expired';
    if (link.outcome !== undefined) return link.outcome;
    const activeId = await findActiveId(place);
    return activeId !== undefined && activeId !== link.before ? 'connected' : undefined;
  }

  return {
    async create(request) {
      const { server, scopes } = request;
      const place = findPlace(request.owner, server);
      const before = await findActiveId(place);
      const named = JSON.stringify([place.ownerName, server, scopes ?? [], before]);
      const key = buildConnectionLinkKey(hashSha256(named));
      const known = await recent.get(key);
      if (known !== undefined && isOpen(await links.get(known))) return buildLink(known, server);
      const id = await links.put({ owner: place.owner, server, scopes, before });
      // Simultaneous callers get the same link.
      const standing = await recent.create(key, id, SAME_LINK_SECONDS);
      return buildLink(isOpen(await links.get(standing)) ? standing : id, server);
    },
    async find(id) {
      const link = await links.get(id);
      if (!isOpen(link)) return undefined;
      const { owner, server, scopes } = link;
      return { owner, server, scopes };
    },
    async decline(id) {
      const link = await close(id, 'declined');
      if (link !== undefined) changes.announce(findPlace(link.owner, link.server), 'declined');
    },
    complete: (id) =>
      close(id, 'connected').then(
        () => {},
        // Waiting calls see the connection itself.
        () => {},
      ),
    wait(id, request, signal) {
      const place = findPlace(request.owner, request.server);
      return waitForOutcome<RequestOutcome>({
        look: () => look(id, place),
        listen: (check) =>
          changes.listen(({ hash }) => {
            if (hash === place.hash) check();
          }),
        late: 'expired',
        waitMs: WAIT_MS,
        signal,
        clock,
      });
    },
  };
}
