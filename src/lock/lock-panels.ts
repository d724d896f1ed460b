// §22.4, §22.6: what the lock hides, and approving it.
import { fail } from '../errors/gateway-error.ts';
import type { AdminPanel, AdminWork } from '../http/endpoint/admin-panel.ts';
import { readPageRequest, renderNextOf } from '../http/endpoint/admin-requests.ts';
import { createJsonReply, getJson, type Reply } from '../http/endpoint/message.ts';
import { createTurns } from '../platform/clock.ts';
import { hasLevels, isObject, type JsonObject } from '../platform/json.ts';
import { stripUri } from '../platform/secret-texts.ts';
import { toShellWord } from '../platform/text.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { LockedChange, ShownDifference } from './differences.ts';
import type { DescribedServer, LockApproval, ReviewedServer } from './lock-approval.ts';

/**
 * `lock` is undefined without a configuration file: then there is none. `lockCommand` is `postern lock`, as it can be typed where
 * the gateway was started.
 */
export function createLockPanels(
  { config, clock }: Runtime,
  lock: LockApproval | undefined,
  lockCommand: string,
): readonly AdminPanel[] {
  // The lock lies beside the configuration file, as it was named at the start: an operator runs the command there.
  const { configFile } = config.server;
  const command =
    configFile === undefined ? lockCommand : `${lockCommand} --config ${toShellWord(configFile)}`;

  /** @throws GatewayError as `LockApproval.approve`. */
  async function approve(
    digests: ReadonlyMap<string, string>,
    note: (part: AdminWork) => void,
  ): Promise<Reply> {
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
    // The changes that approving them would make.
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
        const given = getJson(body);
        const servers =
          isObject(given) && isObject(given.servers) ? Object.entries(given.servers) : [];
        // Of each server the digest of what the operator was shown.
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

/** A line of its own for each: texts of the audit log are short. */
const describeApproved = ({ server, kind, name, change }: LockedChange): AdminWork => ({
  action: `approve_${change}`,
  target: kind,
  server,
  ...(kind === 'tool' && { tool: name }),
  ...(kind === 'prompt' && { prompt: name }),
  ...(kind === 'skill' && name !== undefined && { resource: stripUri(name) }),
});

// §22.6: what approving a server would change, whole: nobody approves what was not shown.

/** The characters of all texts of one answer: more than anybody reads. */
const MAX_CHARACTERS = 1_000_000;

/** One that is too long to be shown has no digest, so that it cannot be approved here. */
function renderReviews(reviews: readonly ReviewedServer[]): readonly JsonObject[] {
  let left = MAX_CHARACTERS;

  function renderReview(review: DescribedServer): JsonObject {
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

const describeLength = (servers: number): string =>
  servers > 1
    ? 'has changed more than can be shown together with the others: approve it by itself'
    : `has changed more than the ${MAX_CHARACTERS} characters that can be shown here: approve it by the command`;

// §22.4: what differs from what was approved, as texts that can be laid side by side.

/** The part of a description or a schema that is shown. */
interface Extent {
  /** The rest is cut. */
  readonly characters: number;
  /** JSON that is longer is on one line. */
  readonly indented: number;
}

/** In a list, which is to be looked through. */
export const EXCERPT: Extent = { characters: 4_000, indented: 4_000 };
/** Whatever is to be approved is shown whole. */
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

function renderText(side: 'before' | 'now', value: unknown, extent: Extent): JsonObject {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : renderJson(value, extent);
  return text.length <= extent.characters
    ? { [side]: text }
    : { [side]: text.slice(0, extent.characters), isCut: true };
}

/** Indented where that is short: each line of what nests deep would have more indentation than text. */
function renderJson(value: unknown, { indented }: Extent): string {
  const text = JSON.stringify(value);
  const isReadable = text.length <= indented && hasLevels(value, MAX_LEVELS);
  return isReadable ? JSON.stringify(value, undefined, 2) : text;
}

const MAX_LEVELS = 16;
