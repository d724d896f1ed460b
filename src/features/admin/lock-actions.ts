// §22.4, §22.6: what the lock hides, and approving it.
import { fail } from '../../core/errors/gateway-error.ts';
import type { JsonObject } from '../../core/json.ts';
import type { PageRequest } from '../../core/store/store.ts';
import type { Approved, LockApproval } from '../upstreams/catalog/lock-approval.ts';
import type { UpstreamCatalogs } from '../upstreams/catalog/upstream-catalogs.ts';
import { EXCERPT, renderDifference, renderLockCommand } from './render-difference.ts';
import { renderNextOf } from './render-page.ts';
import { renderReviews } from './render-review.ts';

export interface LockSources extends Pick<UpstreamCatalogs, 'listLockDifferences'> {
  /** Undefined without a configuration file. */
  readonly lockApproval: LockApproval | undefined;
  /** Of the configuration file, as it was named at the start; the lock lies beside it. */
  readonly configPath: string | undefined;
  /** `postern lock`, as it can be typed where the gateway was started. */
  readonly lockCommand: string;
}

export interface LockActions {
  listLockDifferences(request: PageRequest): Promise<JsonObject>;
  /** What approving them would change. @throws GatewayError as `LockApproval.review`. */
  reviewLock(servers: readonly string[]): Promise<JsonObject>;
  /** @throws GatewayError as `LockApproval.approve`. */
  approveLock(digests: ReadonlyMap<string, string>): Promise<Approved>;
}

export const createLockActions = (sources: LockSources): LockActions => ({
  async listLockDifferences({ from, limit }) {
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
  async reviewLock(servers) {
    const reviews = (await sources.lockApproval?.review(servers)) ?? fail('lock_not_approvable');
    return { servers: renderReviews(reviews) };
  },
  approveLock: async (digests) =>
    sources.lockApproval?.approve(digests) ?? fail('lock_not_approvable'),
});
