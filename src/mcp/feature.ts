// A feature of the gateway is one value: what it needs of those before it in the list, how it opens, and what it then gives to each
// part of the gateway. src/gateway/gateway.ts is the list; nothing else knows all features.

import type { AdminPanel } from '../http/endpoint/admin-panel.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { StoredCounts } from '../telemetry/metrics/metrics.ts';

/** `Needs` are ports of features that open before it, `Gives` its own, for those that open after it. */
export interface Feature<Needs extends object, Gives extends object, File> {
  /** As an error at its start or end names it. */
  readonly name: string;
  /** Asks nobody anything that could be down: a gateway starts without its provider, its store and its servers. */
  readonly open: (
    runtime: Runtime,
    needs: Needs,
  ) => OpenFeature<Gives, File> | Promise<OpenFeature<Gives, File>>;
}

/** All members but `gives` are optional; each has one consumer, which goes through all features. */
interface OpenFeature<Gives extends object, File> extends FeatureParts<File> {
  readonly gives: Gives;
}

export interface FeatureParts<File> {
  /** For the router. */
  readonly endpoints?: readonly Endpoint[];
  /** For the operators' page, which shows them where there is one. */
  readonly panels?: readonly AdminPanel[];
  /** For `/health/ready`, by the names that it shows: each rejects while the gateway must not be sent requests. */
  readonly readiness?: Readonly<Record<string, () => Promise<void>>>;
  /** For `/metrics`. @throws StoreUnavailable: the number is left out. */
  readonly gauges?: Gauges;
  /** Begins its own work, once all features are open. */
  start?(): void;
  /**
   * Another configuration file: finds all that is wrong with it, and changes nothing. What it resolves to takes the file over; it
   * is called once no feature has refused.
   *
   * @throws ConfigError, or what the file cannot be used for.
   */
  prepare?(file: File): Promise<() => void | Promise<void>>;
  /** The process is about to stop: ends what would wait on. */
  stopWaiting?(): void;
  /** Resolves once nothing is under way, after `graceMs` at the latest. */
  drain?(graceMs: number): Promise<void>;
  /** In the reverse of the order in which they were opened, while all before it are still open. */
  close?(): void | Promise<void>;
}

export type Gauges = {
  readonly [Gauge in keyof StoredCounts]?: () => Promise<StoredCounts[Gauge]>;
};

/** Ports that a feature gives to those after it. */
export type Given<Opened> = Opened extends Feature<never, infer Gives, never> ? Gives : never;

/** The feature itself: its types follow from `open`. */
export const defineFeature = <Needs extends object, Gives extends object, File>(
  feature: Feature<Needs, Gives, File>,
): Feature<Needs, Gives, File> => feature;

// Features open in the order of a list. A feature that stands before one that it needs does not compile.

/** `Ports` are those that the features of the list give, and what the list was begun with. */
interface FeatureList<File, Begin extends object, Ports extends object> {
  with<Gives extends object>(
    feature: Feature<Ports, Gives, File>,
  ): FeatureList<File, Begin, Ports & Gives>;
  /** Closes those that are open where one of them does not open. @throws what that one throws. */
  open(runtime: Runtime, begin: Begin): Promise<OpenFeatures<File, Ports>>;
}

interface OpenFeatures<File, Ports extends object> {
  readonly ports: Ports;
  /** In the order of the list. */
  readonly features: readonly FeatureParts<File>[];
}

/** An empty list. */
export const beginFeatures = <File, Begin extends object>(): FeatureList<File, Begin, Begin> =>
  extendList(async (_runtime, begin) => ({ ports: begin, features: [] }));

function extendList<File, Begin extends object, Ports extends object>(
  open: FeatureList<File, Begin, Ports>['open'],
): FeatureList<File, Begin, Ports> {
  return {
    open,
    with: (feature) =>
      extendList(async (runtime, begin) => {
        const { ports, features } = await open(runtime, begin);
        try {
          const { gives, ...own } = await feature.open(runtime, ports);
          return { ports: { ...ports, ...gives }, features: [...features, own] };
        } catch (error) {
          await closeAll(features).catch(() => {});
          throw error;
        }
      }),
  };
}

/** Each is closed, also where one before it fails. @throws what the first of those throws. */
export async function closeAll(
  features: readonly Pick<FeatureParts<never>, 'close'>[],
): Promise<void> {
  const failures: unknown[] = [];
  for (const { close } of [...features].reverse()) {
    try {
      await close?.();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
