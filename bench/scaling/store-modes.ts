// The three ways in which a process asks Redis for the limits and the records of a call.

export interface StoreMode {
  readonly name: 'log' | 'leased' | 'tracked';
  /** As the tables show it. */
  readonly label: string;
  readonly settings: Readonly<Record<string, string>>;
}

const LEASED = { RATE_LIMIT_COUNTING: 'leased' };

export const STORE_MODES: readonly StoreMode[] = [
  { name: 'log', label: '`log`', settings: {} },
  { name: 'leased', label: '`leased`', settings: LEASED },
  {
    name: 'tracked',
    label: '`leased` and `tracked`',
    settings: { ...LEASED, STORE_READS: 'tracked' },
  },
];

/** The mode that the others are compared with. */
export const DEFAULT_MODE: StoreMode['name'] = 'log';
