// Apart from the schemas, because the thread that reads jobs from SQLite needs these and no schema library.

/** Names of inputs that a job is shown with. */
export const MAX_INPUT_NAMES = 100;
/** Names of inputs that a job is listed with. */
export const MAX_LISTED_INPUT_NAMES = 3;
