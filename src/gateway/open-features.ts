// Opens features in the order of a list. A feature that stands before one that it needs does not compile.
import type { Feature, FeatureParts } from '../mcp/feature.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** `Ports` are those that the features of the list give, and what the list was begun with. */
export interface FeatureList<File, Begin extends object, Ports extends object> {
  with<Gives extends object>(
    feature: Feature<Ports, Gives, File>,
  ): FeatureList<File, Begin, Ports & Gives>;
  /** Closes those that are open where one of them does not open. @throws what that one throws. */
  open(runtime: Runtime, begin: Begin): Promise<OpenFeatures<File, Ports>>;
}

export interface OpenFeatures<File, Ports extends object> {
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
