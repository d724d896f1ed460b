// MCP "Resources", "Subscriptions": how a server of either era is told which changes are wanted.
import { isObject, type JsonObject } from '../../../core/json.ts';
import type { ListName } from '../../../protocol/list-kinds.ts';
import { toStatelessParams } from '../messages/envelope.ts';
import { GATEWAY_CALLER } from '../upstream.ts';
import type { RunningServer } from './server-run.ts';
import type { SubscriptionWire } from './subscriptions.ts';

const LISTS: readonly ListName[] = ['tools', 'prompts', 'resources'];

/** Lists of which the server says when they change. */
export const findListsThatChange = ({ description }: RunningServer): readonly ListName[] =>
  LISTS.filter((list) => has(description.capabilities[list], 'listChanged'));

/** From now on it tells of its lists, too. */
export const createSubscriptionWire = (
  running: RunningServer,
  timeoutMs: number,
): SubscriptionWire => WIRES[running.description.era](running, timeoutMs);

const WIRES = { session: createSessionWire, stateless: createStatelessWire } as const;

function createSessionWire({ connection }: RunningServer, timeoutMs: number): SubscriptionWire {
  return {
    async subscribe(uri) {
      await connection.ask('resources/subscribe', { uri }, timeoutMs);
    },
    unsubscribe: (uri) =>
      void connection.ask('resources/unsubscribe', { uri }, timeoutMs).catch(() => {}),
  };
}

/** One subscription says all that is wanted; a change of it is a new one. */
function createStatelessWire(running: RunningServer): SubscriptionWire {
  const { connection } = running;
  const lists = findListsThatChange(running);
  const uris = new Set<string>();
  let cancel = () => {};
  let isOpening = false;

  function open(): void {
    isOpening = false;
    const notifications = {
      ...Object.fromEntries(lists.map((list) => [`${list}ListChanged`, true])),
      ...(uris.size > 0 && { resourceSubscriptions: [...uris] }),
    };
    const cancelFormer = cancel;
    cancel = Object.keys(notifications).length > 0 ? openWith({ notifications }) : () => {};
    cancelFormer();
  }

  const openWith = (params: JsonObject): (() => void) =>
    connection.openSubscription(
      toStatelessParams({ ...OWN_REQUEST, params }, 0, GATEWAY_CALLER.capabilities),
    );

  /** Several changes at once are one. */
  function openSoon(): void {
    if (isOpening) return;
    isOpening = true;
    queueMicrotask(open);
  }

  openSoon();
  return {
    async subscribe(uri) {
      uris.add(uri);
      openSoon();
    },
    unsubscribe(uri) {
      uris.delete(uri);
      openSoon();
    },
  };
}

const OWN_REQUEST = {
  method: 'subscriptions/listen',
  signal: new AbortController().signal,
  trace: {},
  logLevel: undefined,
};

const has = (capability: unknown, member: string): boolean =>
  isObject(capability) && capability[member] === true;
