// Which clients would log in; not tried where something failed before that all of them need.
import { type Check, type Finding, unknown } from '../finding.ts';
import { type Report, runChecks } from '../run-checks.ts';

/** Failures that shut out no client, or that the checks of clients look at themselves. */
const OTHER_FAILURES = /^(cors|registration|tools|token|server|gateway\.ready\.servers)(\.|$)/;

const NOT_TRIED: readonly Check<unknown>[] = [
  {
    section: 'Clients',
    run: async () => [
      unknown(
        'clients',
        'which clients can log in. Not tried: none can before what fails above works.',
      ),
    ],
  },
];

export const runClientChecks = <Subject>(
  before: readonly Finding[],
  checks: readonly Check<Subject>[],
  subject: Subject,
  report: Report,
): Promise<readonly Finding[]> =>
  runChecks(before.some(isInTheWay) ? NOT_TRIED : checks, subject, report);

/** Whether no client could log in because of it. */
export const isInTheWay = ({ status, check }: Finding): boolean =>
  status === 'failure' && !OTHER_FAILURES.test(check);
