// Feature: one value with the ports that it needs, how it opens, and what it then gives to each part of the gateway.
// src/gateway/gateway.ts lists all features.

import type { AdminPanel } from '../http/endpoint/admin-panel.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { StoredCounts } from '../telemetry/metrics/metrics.ts';

/** `Needs` are ports of features opened before it, `Gives` its own ports for later ones. */
export interface Feature<Needs extends object, Gives extends object, File> {
  /** For errors at startup and shutdown. */
  readonly name: string;
  /** Makes no request that could fail: a gateway starts without its provider, its store and its servers. */
  readonly open: (
    runtime: Runtime,
    needs: Needs,
  ) => OpenFeature<Gives, File> | Promise<OpenFeature<Gives, File>>;
}

/** All members but `gives` are optional; each has one consumer, which loops over all features. */
interface OpenFeature<Gives extends object, File> extends FeatureParts<File> {
  readonly gives: Gives;
}

export interface FeatureParts<File> {
  /** For the router. */
  readonly endpoints?: readonly Endpoint[];
  /** For the operators' page. */
  readonly panels?: readonly AdminPanel[];
  /** Checks of `/health/ready`, by name: each rejects while the gateway must not receive requests. */
  readonly readiness?: Readonly<Record<string, () => Promise<void>>>;
  /** For `/metrics`. @throws StoreUnavailable: the gauge is omitted. */
  readonly gauges?: Gauges;
  /** Starts background work, once all features are open. */
  start?(): void;
  /**
   * Validates a new configuration file, without effect. The returned function applies it, once all features have accepted the
   * file.
   *
   * @throws ConfigError, or the reason why the file cannot be used.
   */
  prepare?(file: File): Promise<() => void | Promise<void>>;
  /** Begins the shutdown: ends waits. */
  stopWaiting?(): void;
  /** Drains: resolves once nothing is in flight, after `graceMs` at the latest. */
  drain?(graceMs: number): Promise<void>;
  /** Called in reverse order of opening, while all earlier features are still open. */
  close?(): void | Promise<void>;
}

export type Gauges = {
  readonly [Gauge in keyof StoredCounts]?: () => Promise<StoredCounts[Gauge]>;
};

/** Ports that a feature gives to later ones. */
export type Given<Opened> = Opened extends Feature<never, infer Gives, never> ? Gives : never;

/** Infers the types of a feature from `open`. */
export const defineFeature = <Needs extends object, Gives extends object, File>(
  feature: Feature<Needs, Gives, File>,
): Feature<Needs, Gives, File> => feature;

// Opens features in the order of a list. A feature listed before one that it needs does not compile.

/** `Ports` are the ports that the listed features give, and those that the list began with. */
interface FeatureList<File, Begin extends object, Ports extends object> {
  with<Gives extends object>(
    feature: Feature<Ports, Gives, File>,
  ): FeatureList<File, Begin, Ports & Gives>;
  /** If one does not open, closes the open ones. @throws what that one throws. */
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

/** Closes all, even if one fails. @throws the first error. */
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
