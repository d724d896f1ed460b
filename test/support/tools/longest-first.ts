import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes long, the longest first; most wait for what they started, so the order is by time and not by CPU. */
const LONG = [
  /clients\/browser-(site|site-widths|playground|admin|axe)\.test/,
  /(4\.4-mcp\/mutations|18-upstreams\/(suspended-calls-model|reload-model|one-callers-failure|slow-lists)|4\.1-endpoints\/slow)\.test/,
  // These wait by the clock of the system.
  /(24-connections\/(keeping|renewal-fails|redirect-uris|token-queue)|(15-streams|29-tasks)\/replicas)\.test/,
  /(25-control\/ways\S*|28-replay\/replay|18-upstreams\/(subscriptions-model|missed-lists)|4\.6-client-id-metadata\/cache)\.test/,
  /process\/(upstream-restarts|watch|workers|workers-end|config-file|held-store|program-users|lock-approve|demo)\.test/,
  /process\/(start-errors|doctor-store|command-line|restart|audit|shutdown|lock-served)\.test/,
  /process\/(image|package|starter|helm-chart|monitoring|compose)\.test/,
  /contract\/upstream-stdio\.test/,
  /clients\/browser/,
  /process\//,
  /clients\//,
  /contract\/redis/,
];

/** In this order: a worker that goes from one project to another begins anew, and loads the source again. */
const PROJECTS = ['browser', 'packaging', 'process', 'program', 'clients', 'contract', 'spec'];

/** Begins with the files that take long, so that no worker is left with one of them at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted(
      (one, other) => rankProject(one) - rankProject(other) || rankFile(one) - rankFile(other),
    );
  }
}

const rankProject = ({ project }: TestSpecification): number => PROJECTS.indexOf(project.name);

function rankFile({ moduleId }: TestSpecification): number {
  const at = LONG.findIndex((pattern) => pattern.test(moduleId));
  return at === -1 ? LONG.length : at;
}
