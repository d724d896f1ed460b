// §22.4, §22.6: what the lock hides, and approving it.
import { fail } from '../../errors/gateway-error.ts';
import { hasLevels, type JsonObject } from '../../platform/json.ts';
import { toShellWord } from '../../platform/text.ts';
import type { PageRequest } from '../../store/page.ts';
import type { ReviewedDifference } from '../../upstreams/catalog/list-lock-differences.ts';
import type {
  DescribedServer,
  LockApproval,
  ReviewedServer,
} from '../../upstreams/catalog/lock-approval.ts';
import type { UpstreamCatalogs } from '../../upstreams/catalog/upstream-catalogs.ts';
import { renderNextOf } from './read-request.ts';

export interface LockSources extends Pick<UpstreamCatalogs, 'listLockDifferences'> {
  /** Undefined without a configuration file. */
  readonly lockApproval: LockApproval | undefined;
  /** Of the configuration file, as it was named at the start; the lock lies beside it. */
  readonly configPath: string | undefined;
  /** `postern lock`, as it can be typed where the gateway was started. */
  readonly lockCommand: string;
}

export const createLockActions = (sources: LockSources) => ({
  async listLockDifferences({ from, limit }: PageRequest) {
    const skip = from?.skip ?? 0;
    const found = sources.listLockDifferences({ skip, limit });
    const command = renderLockCommand(sources.lockCommand, sources.configPath);
    if (found === undefined) return { isLocked: false, command };
    return {
      isLocked: true,
      command,
      ...found,
      obstacle: await sources.lockApproval?.findObstacle(),
      differences: found.differences.map((one) => renderDifference(one, EXCERPT)),
      ...renderNextOf(found.total, skip + limit),
    };
  },
  /** What approving them would change. @throws GatewayError as `LockApproval.review`. */
  async reviewLock(servers: readonly string[]) {
    const reviews = (await sources.lockApproval?.review(servers)) ?? fail('lock_not_approvable');
    return { servers: renderReviews(reviews) };
  },
  /** @throws GatewayError as `LockApproval.approve`. */
  approveLock: async (digests: ReadonlyMap<string, string>) =>
    sources.lockApproval?.approve(digests) ?? fail('lock_not_approvable'),
});

// §22.6: what approving a server would change, whole: nobody approves what was not shown.

/** Of the texts of one answer, in characters: more than anybody reads. */
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

/** How much of a description or a schema is shown. */
interface Extent {
  /** The rest is cut. */
  readonly characters: number;
  /** JSON that is longer is on one line. */
  readonly indented: number;
}

/** In a list, which is to be looked through. */
export const EXCERPT: Extent = { characters: 4_000, indented: 4_000 };
/** What is to be approved. */
const WHOLE: Extent = { characters: Number.POSITIVE_INFINITY, indented: 50_000 };

/** What an operator runs where the lock lies. */
const renderLockCommand = (lockCommand: string, configPath: string | undefined): string =>
  configPath === undefined ? lockCommand : `${lockCommand} --config ${toShellWord(configPath)}`;

export const renderDifference = (
  { members, ...difference }: ReviewedDifference,
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
