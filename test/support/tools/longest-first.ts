import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes long, the longest first; most wait for what they started, so the order is by time and not by CPU. */
const LONG = [
  /clients\/browser-(site|playground|pages)\.test/,
  /4\.4-mcp\/mutations\.test/,
  /process\/(upstream-restarts|package|image|doctor-gateway|starter|workers)\.test/,
  /contract\/upstream-stdio\.test/,
  /clients\/browser/,
  /process\//,
  /clients\//,
  /contract\/redis/,
];

/** Begins with the files that take long, so that no worker is left with one of them at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((pattern) => pattern.test(moduleId));
      return at === -1 ? LONG.length : at;
    };
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
