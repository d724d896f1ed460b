// §22.5: how the operators' page renders a panel's list. The page has one component for all lists; it imports this file, which
// therefore has no imports.

/** The groups of the side navigation, in its order. */
export type AdminGroup = 'overview' | 'people' | 'tools' | 'activity';

/**
 * A table of the objects in one member of a panel's response. Values from others are rendered as text, and cannot hide anything.
 */
export interface AdminTable {
  readonly group: AdminGroup;
  /** The name in the navigation. */
  readonly tab: string;
  readonly title: string;
  /** A sentence or two above the rows. */
  readonly about?: string;
  /** Shown if there are no rows. */
  readonly none: string;
  /** The member of the response with the rows. `nextCursor` leads to further pages. */
  readonly rows: string;
  /** The member of the response with the total number of rows. */
  readonly count?: string;
  /** True if `?person=` finds a user's rows. */
  readonly isSearchable?: true;
  /** Beside the search for a user. */
  readonly filters?: readonly AdminFilter[];
  /** The page asks for the first rows again every two seconds, while they are in view. */
  readonly follows?: true;
  /** The first column is the heading of the row. */
  readonly columns: readonly AdminColumn[];
  readonly acts?: readonly AdminTableAct[];
}

/** A query parameter of the panel that narrows the rows down. */
export interface AdminFilter {
  readonly parameter: string;
  readonly title: string;
  /** The values to choose from; without them, any text can be entered. */
  readonly options?: readonly { readonly value: string; readonly title: string }[];
}

/** The color of a status: text always stands beside it. */
export type AdminStatus = 'ok' | 'warning' | 'error' | 'off';

export interface AdminColumn {
  readonly title: string;
  /** The path of the value in a row (`client.name`). */
  readonly member: string;
  /** Shown in rows without a value, which otherwise omit the column. */
  readonly none?: string;
  /**
   * `text` by default, of which 200 characters are shown; `whole` is text that the gateway itself bounds. List items are shown
   * one below the other. `user` shows the user of the row from `name`, `email`, `user` and `issuer`, and `client` an object with
   * `title`, `name`, `id`, `version` and `redirectHost`. `status` is a dot with text, by `statuses`. `duration` is in
   * milliseconds, `size` in bytes, and `count` a number.
   */
  readonly kind?:
    | 'text'
    | 'whole'
    | 'code'
    | 'time'
    | 'user'
    | 'client'
    | 'status'
    | 'duration'
    | 'size'
    | 'count';
  /** By the value of a `status`: `true` and `false` for a boolean. Other values are shown as they are, as `off`. */
  readonly statuses?: Readonly<
    Record<string, { readonly status: AdminStatus; readonly title: string }>
  >;
}

/** A button in each row, which sends a DELETE after confirmation. */
export interface AdminTableAct {
  readonly label: string;
  /** The confirmation question; `{member}` is replaced with the column of this member. */
  readonly question: string;
  /** The label of the confirmation button. */
  readonly answer: string;
  /** Below `/admin/api`, with `{id}` from the row. */
  readonly path: string;
  /** Members of the row that are sent as parameters if present. */
  readonly query?: readonly string[];
}
