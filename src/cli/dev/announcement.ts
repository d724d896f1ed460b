// What postern dev says once it serves: all of it at first, then what has changed.
import { escapeInvisible } from '../../platform/invisible.ts';
import { PACKAGE_VERSION } from '../../platform/own-files.ts';

interface Announcement extends Banner {
  /** How much is served, and what was kept. */
  readonly summary: string;
  /** The changed files that were loaded; none after the first start, and where somebody asked for that. */
  readonly loaded: readonly string[];
}

/** `hasKeys` says that the user can ask for the rest by keys. */
export function createAnnouncer(write: (text: string) => void, hasKeys: boolean) {
  // Names of files and what these say may be another's: nothing of them moves the cursor of a terminal.
  const print = (text: string) => write(escapeInvisible(text));
  let told: Announcement | undefined;

  return {
    announce(announcement: Announcement): void {
      const { facts, summary, loaded } = announcement;
      if (told === undefined && loaded.length === 0) {
        print(hasKeys ? renderShortBanner(announcement) : renderBanner(announcement));
      } else {
        const why = loaded.length === 0 ? '' : `: ${loaded.join(', ')} changed`;
        // Another process has told of them before. Only .env can have changed them meanwhile, and which is not known here.
        const before = told ?? (loaded.includes('.env') ? undefined : announcement);
        const known = before?.facts.map((fact) => renderFacts([fact])) ?? [];
        const changed = facts.filter(
          (fact) =>
            !(before === undefined && fact.isDetail) && !known.includes(renderFacts([fact])),
        );
        print(`Reloaded${why}. ${summary}.\n${renderFacts(changed)}`.trimEnd());
      }
      told = announcement;
    },
    note: print,
    /** What clients are given, where the banner left it out. */
    printHints() {
      if (told !== undefined) print(`\n${told.hints}`);
    },
  };
}

export interface Fact {
  readonly name: string;
  readonly lines: readonly string[];
  /** Left out of the short banner. */
  readonly isDetail?: true;
}

export interface Banner {
  readonly facts: readonly Fact[];
  /** What to type next, and what clients are given: the same after most changes. */
  readonly hints: string;
}

export const renderBanner = ({ facts, hints }: Banner): string => `
  Postern ${PACKAGE_VERSION} is running for development. Do not use it in production.

${renderFacts(facts)}
${hints}
  LOG_LEVEL=debug logs every request. Press Ctrl+C to stop.`;

/** Where keys can be pressed for the rest. */
const renderShortBanner = ({ facts }: Banner): string => `
  Postern ${PACKAGE_VERSION} is running for development. Do not use it in production.

${renderFacts(facts.filter(({ isDetail }) => !isDetail))}
  Press c to see how clients connect, Ctrl+C to stop.
`;

const renderFacts = (facts: readonly Fact[]): string =>
  facts
    .flatMap(({ name, lines }) =>
      lines.map((line, index) => `  ${(index === 0 ? name : '').padEnd(9)} ${line}\n`),
    )
    .join('');
