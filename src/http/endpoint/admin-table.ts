// §22.5: how the operators' page draws the list of a panel. The page has one component for all of them; it imports this file, which
// therefore imports nothing.

/** The objects in one member of a panel's answer, as rows. What others chose is text on the page, and hides nothing. */
export interface AdminTable {
  /** The name of its tab. */
  readonly tab: string;
  readonly title: string;
  /** A sentence or two above the rows. */
  readonly about?: string;
  /** Stands in place of the rows where there are none. */
  readonly none: string;
  /** The member of the answer that has the rows. Further pages are had by `nextCursor`. */
  readonly rows: string;
  /** The member of the answer that says how many there are in all. */
  readonly count?: string;
  /** `?person=` finds the rows of a user. */
  readonly isSearchable?: true;
  /** The first one is the heading of its row. */
  readonly columns: readonly AdminColumn[];
  readonly acts?: readonly AdminTableAct[];
}

export interface AdminColumn {
  readonly title: string;
  /** The path of the value in a row (`client.name`). */
  readonly member: string;
  /** Stands in rows without a value, which otherwise do not show the column. */
  readonly none?: string;
  /**
   * `text` unless given, of which 200 characters are shown; `whole` is a text that the gateway bounds itself. Lists are shown one below the other. `user` names the user of the row by `name`, `email`, `user` and
   * `issuer`, and `client` an object by `title`, `name`, `id` and `version`.
   */
  readonly kind?: 'text' | 'whole' | 'code' | 'time' | 'user' | 'client';
}

/** A button of each row, which sends a DELETE after a question. */
export interface AdminTableAct {
  readonly label: string;
  /** `{member}` is filled in with the column of this member. */
  readonly question: string;
  /** Stands on the button that does it. */
  readonly answer: string;
  /** Below `/admin/api`, with `{id}` of the row. */
  readonly path: string;
  /** Members of the row that are sent as parameters, where it has them. */
  readonly query?: readonly string[];
}
