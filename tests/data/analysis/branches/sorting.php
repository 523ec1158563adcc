<?php

function plain($value) {
    return $value;
}

function sort_out($values, $wanted) {
    foreach ($values as $value) {
        if ($value === $wanted && $value) {
            return plain($value);
        }
    }
    return null;
}
