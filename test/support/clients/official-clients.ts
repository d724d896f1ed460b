// The official clients in every way to negotiate an era, by one interface.
import type { OfficialClientRow } from './official-client.ts';
import { connectOfficialClient1 } from './official-client-1.ts';
import { connectOfficialClient2 } from './official-client-2.ts';

export const OFFICIAL_CLIENTS: readonly OfficialClientRow[] = [
  { title: '1.32', era: 'session', version: '2025-11-25', connect: connectOfficialClient1 },
  ...(
    [
      ['2.4', undefined],
      ['2.4 with mode auto', 'auto'],
      ['2.4 pinned to 2026-07-28', { pin: '2026-07-28' }],
    ] as const
  ).map(([title, mode]) => ({
    title,
    era: mode === undefined ? ('session' as const) : ('stateless' as const),
    version: mode === undefined ? '2025-11-25' : '2026-07-28',
    connect: (url: URL) => connectOfficialClient2(url, mode),
  })),
];
