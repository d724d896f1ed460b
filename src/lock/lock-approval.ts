// §22.6: operators approve servers' descriptions on their page: exactly what they were shown, or nothing.

import { fail } from '../errors/gateway-error.ts';
import type { AdminPanel, AdminWork } from '../http/endpoint/admin-panel.ts';
import { readPageRequest, renderNextOf } from '../http/endpoint/admin-requests.ts';
import { createJsonReply } from '../http/endpoint/message.ts';
import type { ApprovableServer, Lock } from '../mcp/catalog/approved-items.ts';
import { UpstreamError } from '../mcp/upstream/upstream.ts';
import { createTurns } from '../platform/clock.ts';
import { describeCode } from '../platform/error-code.ts';
import { hasLevels, isObject, type JsonObject } from '../platform/json.ts';
import { stripUri } from '../platform/secret-texts.ts';
import { createSingleFlight } from '../platform/single-flight.ts';
import { toShellWord } from '../platform/text.ts';
import type { Runtime } from '../runtime/runtime.ts';
import {
  type AnsweredServer,
  askServer,
  createLock,
  describeReview,
  type LockedChange,
  listLockDifferences,
  reviewServer,
  type ServerReview,
  type ShownDifference,
} from './lock.ts';
import { LockFileError, type StoredLock } from './lock-file.ts';

type LockApproval = ReturnType<typeof createLockApproval>;

export type ReviewedServer = DescribedServer | UnreadServer;

export interface DescribedServer extends Pick<ServerReview, 'server' | 'digest'> {
  readonly differences: readonly ShownDifference[];
}

interface UnreadServer {
  readonly server: string;
  /** The rest of a sentence that begins with the server's name. */
  readonly problem: string;
}

/** `getLock` returns the lock that is enforced; `storedLock` is undefined if this process has no lock file. */
export function createLockApproval(
  { clock, log, store }: Runtime,
  getServers: () => ReadonlyMap<string, ApprovableServer>,
  getLock: () => Lock | undefined,
  storedLock: StoredLock | undefined,
) {
  /** Serializes approvals: the second of two operators finds what the first one wrote. */
  let writing: Promise<unknown> = Promise.resolve();
  /** Single flight: operators who view a server at the same time share one request. Its lists may be long, and it may hang. */
  const asking = createSingleFlight<ApprovableServer, AnsweredServer | UnreadServer>();

  /** Says in sentences why nothing can be approved here; undefined if it can. */
  async function findObstacle() {
    if (store.isShared)
      return 'With Redis there may be several replicas, each with its own postern.lock, so this page cannot write it for all of them.';
    if (storedLock === undefined) return 'This gateway does not know where postern.lock is.';
    const file = read(storedLock);
    if (file instanceof LockFileError) return file.message;
    if (file === undefined)
      return `${storedLock.path} is not there, or is {}: everything is approved.`;
    const code = await storedLock.findObstacle();
    return code && `The gateway cannot write ${storedLock.path} (${code}).`;
  }

  /** @throws GatewayError `lock_not_approvable`. */
  async function requireLock() {
    const details = await findObstacle();
    if (details !== undefined) fail('lock_not_approvable', { details });
    return storedLock ?? fail('lock_not_approvable');
  }

  /** @throws GatewayError `lock_not_approvable`. */
  function readApproved(lock: StoredLock) {
    const file = read(lock);
    if (file instanceof LockFileError)
      fail('lock_not_approvable', { details: file.message, cause: file });
    return file ?? fail('lock_not_approvable');
  }

  function selectServers(names: Iterable<string>) {
    const servers = getServers();
    return [...new Set(names)].map((name) => servers.get(name) ?? fail('server_not_found'));
  }

  async function ask(server: ApprovableServer) {
    const { name } = server;
    if (server.isPersonal) return { server: name, problem: PERSONAL };
    return asking.run(server, () =>
      askServer(server, clock).catch((error: unknown) => {
        if (error instanceof UpstreamError)
          return { server: name, problem: `could not be read: ${error.logReason}` };
        throw error;
      }),
    );
  }

  async function write(
    lock: StoredLock,
    answers: readonly AnsweredServer[],
    digests: ReadonlyMap<string, string>,
  ) {
    const former = readApproved(lock);
    const reviews = answers.map((one) => reviewServer(one, former));
    const changed = reviews.filter(({ server, digest }) => digests.get(server) !== digest);
    if (changed.length > 0) {
      const names = changed.map(({ server }) => server).join(', ');
      fail('lock_changed', {
        details: `What ${names} lists, or what was approved of it, has changed since you looked. Nothing was approved. Look again.`,
      });
    }
    // The reviews replace what was approved for these servers; other servers stay as they are.
    const reviewed = reviews.map(({ server, found }) => [server, found] as const);
    const isLoaded = await lock
      .save({ servers: new Map([...former.servers, ...reviewed]) })
      .catch((cause: unknown) => {
        const code = describeCode(cause);
        const hint = HINTS[code];
        return fail('lock_not_written', {
          details: `${lock.path} could not be written (${code}). ${hint === undefined ? '' : `${hint} `}Nothing was approved.`,
          cause,
        });
      });
    log.info('An operator approved what servers say, and postern.lock was written.', {
      path: lock.path,
      servers: reviews.map(({ server }) => server),
      differences: reviews.reduce((sum, { changes }) => sum + changes.length, 0),
    });
    // The file was written, but the gateway could not load it. The log says why.
    return { reviews, isLoaded };
  }

  return {
    findObstacle,
    /**
     * Lists differences that the lock hides from clients: from `skip` on, `limit` at most. Undefined without a lock.
     */
    listDifferences(part: Parameters<typeof listLockDifferences>[2]) {
      const lock = getLock();
      return lock && listLockDifferences(getServers().values(), lock, part);
    },
    /**
     * Lists the changes that approving these servers would make; without names, those of all servers whose lists do not differ
     * between users. Queries the servers; those that cannot be read have a `problem`.
     *
     * @throws GatewayError `server_not_found`, `lock_not_approvable`.
     */
    async review(names: readonly string[]) {
      const stored = await requireLock();
      const servers =
        names.length > 0
          ? selectServers(names)
          : [...getServers().values()].filter(({ isPersonal }) => !isPersonal);
      const answers = await Promise.all(servers.map(ask));
      const file = readApproved(stored);
      const lock = createLock(file);
      const work = createTurns(clock);
      const reviewed: ReviewedServer[] = [];
      for (const one of answers) {
        if ('problem' in one) {
          reviewed.push(one);
          continue;
        }
        const { server, digest, changes } = reviewServer(one, file);
        const differences = await describeReview(one, changes, lock, work);
        reviewed.push({ server, digest, differences });
      }
      return reviewed;
    },
    /**
     * Writes postern.lock if nothing has changed since the reviews: `digests` are theirs.
     *
     * @throws GatewayError `server_not_found`, `lock_not_approvable`, `lock_server_unread`, `lock_changed`, `lock_not_written`.
     */
    async approve(digests: ReadonlyMap<string, string>) {
      const lock = await requireLock();
      const answers = await Promise.all(selectServers(digests.keys()).map(ask));
      const unread = answers.flatMap((one) => ('problem' in one ? [one] : []));
      const answered = answers.flatMap((one) => ('problem' in one ? [] : [one]));
      if (unread.length > 0) {
        const names = unread.map(({ server, problem }) => `${server} ${problem}`).join('; ');
        fail('lock_server_unread', { details: `${names}. Nothing was approved.` });
      }
      const own = writing.catch(() => {}).then(() => write(lock, answered, digests));
      writing = own;
      return own;
    },
  };
}

/** The current lock; undefined if nothing is locked. */
function read(lock: StoredLock) {
  try {
    return lock.read();
  } catch (error) {
    if (error instanceof LockFileError) return error;
    throw error;
  }
}

const PERSONAL =
  'has lists that differ between users: approve what one of them sees by postern lock --token-file FILE';

const HINTS: Readonly<Record<string, string>> = {
  EBUSY: 'It is mounted as a single file, which cannot be replaced: mount its folder instead.',
  ENOSPC: 'The disk is full.',
};

// §22.4, §22.6: panels of what the lock hides, and of approving it.

/**
 * `lock` is undefined without a configuration file. `lockCommand` is `postern lock`, as it can be typed in any folder of
 * this machine.
 */
export function createLockPanels(
  { config, clock }: Runtime,
  lock: LockApproval | undefined,
  lockCommand: string,
): readonly AdminPanel[] {
  // The lock file is next to the configuration file, as it was named at startup: operators run the command there.
  const { configFile } = config.server;
  const command =
    configFile === undefined ? lockCommand : `${lockCommand} --config ${toShellWord(configFile)}`;

  /** @throws GatewayError as `LockApproval.approve`. */
  async function approve(digests: ReadonlyMap<string, string>, note: (part: AdminWork) => void) {
    const { reviews, isLoaded } = (await lock?.approve(digests)) ?? fail('lock_not_approvable');
    const turns = createTurns(clock);
    for (const change of reviews.flatMap(({ changes }) => changes)) {
      note(describeApproved(change));
      if (turns.isOver()) await turns.next();
    }
    return createJsonReply(200, {
      approved: reviews.map(({ server, changes }) => ({ server, differences: changes.length })),
      isLoaded,
    });
  }

  return [
    {
      method: 'GET',
      path: '/lock',
      async show(query) {
        const { from, limit } = readPageRequest(query);
        const skip = from?.skip ?? 0;
        const found = lock?.listDifferences({ skip, limit });
        if (found === undefined) return { isLocked: false, command };
        return {
          isLocked: true,
          command,
          ...found,
          obstacle: await lock?.findObstacle(),
          differences: found.differences.map((one) => renderDifference(one, EXCERPT)),
          ...renderNextOf(found.total, skip + limit),
        };
      },
    },
    // The changes that approving the servers would make.
    {
      method: 'GET',
      path: '/lock/review',
      async show(query) {
        const reviews = (await lock?.review(query.getAll('server'))) ?? fail('lock_not_approvable');
        return { servers: renderReviews(reviews) };
      },
    },
    {
      method: 'POST',
      path: '/lock',
      prepare({ body }) {
        const given = body.value;
        const servers =
          isObject(given) && isObject(given.servers) ? Object.entries(given.servers) : [];
        // For each server, the digest that the operator was shown.
        const digests = new Map(
          servers.flatMap(([server, digest]) =>
            typeof digest === 'string' && DIGEST.test(digest) ? [[server, digest] as const] : [],
          ),
        );
        if (digests.size === 0 || digests.size !== servers.length)
          return fail('bad_request', {
            details:
              'Send {"servers": {"NAME": "DIGEST"}}, with the digest of each server as /admin/api/lock/review says it.',
          });
        return {
          action: 'approve',
          target: [...digests.keys()].join(', '),
          run: (note) => approve(digests, note),
        };
      },
    },
  ];
}

const DIGEST = /^[\w-]{43}$/;

/** One line each: values in the audit log are short. */
const describeApproved = ({ server, kind, name, change }: LockedChange) => ({
  action: `approve_${change}`,
  target: kind,
  server,
  ...(kind === 'tool' && { tool: name }),
  ...(kind === 'prompt' && { prompt: name }),
  ...(kind === 'skill' && name !== undefined && { resource: stripUri(name) }),
});

// §22.6: shows in full the changes that approving a server would make: operators approve only what they were shown.

/** Maximum total length of the text in one response, in characters. */
const MAX_CHARACTERS = 1_000_000;

/** A review that is too long to be shown has no digest, so it cannot be approved here. */
function renderReviews(reviews: readonly ReviewedServer[]) {
  let left = MAX_CHARACTERS;

  function renderReview(review: DescribedServer) {
    const { server, digest, differences } = review;
    const shown: JsonObject[] = [];
    let characters = 0;
    for (const difference of differences) {
      const one = renderDifference(difference, WHOLE);
      characters += JSON.stringify(one).length;
      if (characters > left) return { server, problem: describeLength(reviews.length) };
      shown.push(one);
    }
    left -= characters;
    return { server, digest, differences: shown };
  }

  return reviews.map((one) => ('problem' in one ? { ...one } : renderReview(one)));
}

const describeLength = (servers: number) =>
  servers > 1
    ? 'has changed more than can be shown together with the others: approve it by itself'
    : `has changed more than the ${MAX_CHARACTERS} characters that can be shown here: approve it by the command`;

// §22.4: renders differences as text that can be compared side by side.

/** How much of a description or a schema is shown. */
interface Extent {
  /** The rest is truncated. */
  readonly characters: number;
  /** Longer JSON is written on one line. */
  readonly indented: number;
}

/** For a list to skim. */
export const EXCERPT: Extent = { characters: 4_000, indented: 4_000 };
/** For approval: everything is shown in full. */
const WHOLE: Extent = { characters: Number.POSITIVE_INFINITY, indented: 50_000 };

export const renderDifference = (
  { members, ...difference }: ShownDifference,
  extent: Extent,
): JsonObject => ({
  ...difference,
  members: members.map(({ name, before, now }) => ({
    name,
    ...renderText('before', before, extent),
    ...renderText('now', now, extent),
  })),
});

function renderText(side: 'before' | 'now', value: unknown, extent: Extent) {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : renderJson(value, extent);
  return text.length <= extent.characters
    ? { [side]: text }
    : { [side]: text.slice(0, extent.characters), isCut: true };
}

/** Indented if short: deeply nested JSON would be more indentation than text. */
function renderJson(value: unknown, { indented }: Extent) {
  const text = JSON.stringify(value);
  const isReadable = text.length <= indented && hasLevels(value, MAX_LEVELS);
  return isReadable ? JSON.stringify(value, undefined, 2) : text;
}

const MAX_LEVELS = 16;
